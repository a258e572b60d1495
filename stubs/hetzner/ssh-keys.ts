import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import * as v from 'valibot';
import { named } from './catalogue.ts';
import { notUnique } from './errors.ts';
import { apiTime, byPathId, parseBody, type StubEnv } from './http.ts';
import { LabelsSchema, parseLabelSelector } from './labels.ts';
import { listResponse } from './paging.ts';
import type { Project } from './project.ts';
import type { SshKey } from './state.ts';

const CreateSshKeySchema = v.object({
  name: v.pipe(v.string(), v.minLength(1, 'is too short')),
  public_key: v.pipe(
    v.string(),
    v.check((key) => keyBlob(key) !== undefined, 'is not a valid public key'),
  ),
  labels: v.nullish(LabelsSchema, {}),
});

/** /ssh_keys: list, create, get, delete. Names and fingerprints are unique. */
export function sshKeyRoutes(project: Project): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .get('/', (c) => {
      const selected = parseLabelSelector(c.req.query('label_selector'));
      const fingerprint = c.req.query('fingerprint');
      const keys = named(project.state.sshKeys, c.req.query('name')).filter(
        (key) => selected(key.labels) && (fingerprint === undefined || key.fingerprint === fingerprint),
      );
      return listResponse(c, 'ssh_keys', keys, sshKeyView);
    })
    .post('/', async (c) => {
      const { name, public_key, labels } = await parseBody(c, CreateSshKeySchema);
      const fingerprint = sshFingerprint(public_key);
      const { sshKeys } = project.state;
      if (sshKeys.some((key) => key.name === name)) throw notUnique('name', 'SSH key name is already used');
      if (sshKeys.some((key) => key.fingerprint === fingerprint)) {
        throw notUnique('public_key', 'SSH key with the same fingerprint already exists');
      }
      const key = {
        id: project.takeId(),
        name,
        fingerprint,
        publicKey: public_key,
        labels,
        createdMs: project.nowMs(),
      };
      sshKeys.push(key);
      return c.json({ ssh_key: sshKeyView(key) }, 201);
    })
    .get('/:id', (c) => c.json({ ssh_key: sshKeyView(byPathId(c, project.state.sshKeys, 'SSH key')) }))
    .delete('/:id', (c) => {
      const gone = byPathId(c, project.state.sshKeys, 'SSH key');
      project.state.sshKeys = project.state.sshKeys.filter(({ id }) => id !== gone.id);
      return c.body(null, 204);
    });
}

/** MD5 over the key's blob in pairs of hexadecimal digits, as the API shows it. Throws a RangeError on no key. */
export function sshFingerprint(publicKey: string): string {
  const blob = keyBlob(publicKey);
  if (blob === undefined) throw new RangeError('not an SSH public key');
  return createHash('md5')
    .update(blob)
    .digest('hex')
    .replace(/..(?!$)/g, '$&:');
}

/** The blob of `type base64 [comment]`: it repeats the type behind a length of 32 bits (RFC 4253, section 6.6). */
function keyBlob(publicKey: string): Buffer | undefined {
  const [type = '', base64 = ''] = publicKey.trim().split(/\s+/);
  const blob = Buffer.from(base64, 'base64');
  if (type === '' || blob.length <= 4 + type.length || blob.readUInt32BE(0) !== type.length) return undefined;
  return blob.toString('latin1', 4, 4 + type.length) === type ? blob : undefined;
}

const sshKeyView = ({ id, name, fingerprint, publicKey, labels, createdMs }: SshKey): object => ({
  id,
  name,
  fingerprint,
  public_key: publicKey,
  labels,
  created: apiTime(createdMs),
});
