import * as v from 'valibot';
import { type Pool, slug } from '../domain/fields.ts';
import { renderUserData } from '../hetzner/cloud-init/render.ts';
import { parseOperatorCidrs } from '../hetzner/firewall-rules.ts';
import { type ResolvedPlacement, validatePlacement } from '../hetzner/validate.ts';
import type { CaBundle } from './ca-bundle.ts';
import { generateNodeName, isNodeName } from './name.ts';
import { done, type ProvisionRefusal, type StepResult, stop, stopForProvider } from './outcome.ts';
import type { ProvisioningPorts } from './ports.ts';
import type { Run } from './run.ts';

/** What an operator asks for. `nodeId` is for callers that repeat a request: the same one never makes a second node. */
export interface ProvisionRequest {
  readonly pool: Pool;
  readonly region: string;
  readonly serverType: string;
  readonly image: string;
  readonly placementGroup: string | null;
  readonly name?: string;
  readonly nodeId?: string;
}

/** A request that nothing stands against, with its name and what it was resolved to at the provider. */
export interface NodePlan {
  readonly nodeId: string;
  readonly name: string;
  readonly placement: ResolvedPlacement;
  readonly caBundle: CaBundle;
}

const NAME_ATTEMPTS = 5;

/**
 * Checks a request before anything is written: what an operator may have mistyped never leaves a node behind that nobody can use.
 * What needs no call comes first; then every problem at the provider at once.
 */
export async function planNode(run: Run, request: ProvisionRequest): Promise<StepResult<NodePlan>> {
  const caBundle = await run.ports.readCaBundle();
  const mistakes = [...mistakesOf(request), ...mistakesOfSettings(run.nodeId, run.ports.settings, caBundle)];
  if (!caBundle.ok || mistakes.length > 0) return { ok: false, refusals: mistakes };
  run.say('validate', `checking ${request.serverType} in ${request.region} with ${request.image}`);
  const [placement, name] = await Promise.all([resolvePlacement(run, request), freeName(run, request)]);
  if (!placement.ok || !name.ok) {
    return { ok: false, refusals: [placement, name].flatMap((check) => (check.ok ? [] : check.refusals)) };
  }
  return done({ nodeId: run.nodeId, name: name.value, placement: placement.value, caBundle: caBundle.value });
}

/** Finds type, location, image, SSH keys and placement group at the provider. */
export async function resolvePlacement(
  { api, ports }: Run,
  request: Pick<ProvisionRequest, 'serverType' | 'region' | 'image' | 'placementGroup'>,
): Promise<StepResult<ResolvedPlacement>> {
  const { serverType, region: location, image, placementGroup } = request;
  const wanted = { serverType, location, image, placementGroup, sshKeys: ports.settings.sshKeys };
  const checked = await validatePlacement(api, wanted, ports.clock.now());
  return checked.ok ? done(checked.value) : stopForProvider(checked.refusals);
}

/** User-data of a node; undefined secret: a stand-in of the same length, to see whether the rest fits. */
export function userDataOf(
  nodeId: string,
  settings: ProvisioningPorts['settings'],
  { pem: gatewayCaPem }: CaBundle,
  enrollmentSecret = '0'.repeat(64),
) {
  const { gatewayUrl, enrollUrl, releaseUrl, agentVersion, releasePublicKey } = settings;
  return renderUserData({
    nodeId,
    enrollmentSecret,
    gatewayUrl,
    enrollUrl,
    releaseUrl,
    agentVersion,
    releasePublicKey,
    gatewayCaPem,
  });
}

function mistakesOf({ name, region, serverType, image, placementGroup }: ProvisionRequest): ProvisionRefusal[] {
  const mistakes: ProvisionRefusal[] = [];
  if (name !== undefined && !isNodeName(name)) {
    mistakes.push({
      code: 'name_invalid',
      message: 'the name is not a host name: lower-case letters, digits and inner hyphens, at most 63',
      remedy: 'choose another --name',
    });
  }
  for (const [what, text] of Object.entries({
    region,
    'server type': serverType,
    image,
    'placement group': placementGroup,
  })) {
    if (text === null || v.is(slug, text)) continue;
    const message = `the ${what} is not a word of letters, digits, dots and hyphens, at most 64`;
    mistakes.push({ code: 'name_invalid', message, remedy: null });
  }
  return mistakes;
}

function mistakesOfSettings(
  nodeId: string,
  settings: ProvisioningPorts['settings'],
  caBundle: StepResult<CaBundle>,
): readonly ProvisionRefusal[] {
  const cidrs = parseOperatorCidrs(settings.operatorCidrs);
  return [
    ...(cidrs.ok ? [] : stopForProvider([cidrs.refusal]).refusals),
    ...(caBundle.ok ? mistakesOfUserData(nodeId, settings, caBundle.value) : caBundle.refusals),
  ];
}

function mistakesOfUserData(
  nodeId: string,
  settings: ProvisioningPorts['settings'],
  caBundle: CaBundle,
): readonly ProvisionRefusal[] {
  const rendered = userDataOf(nodeId, settings, caBundle);
  return rendered.ok ? [] : stop('user_data_invalid', rendered.problems.join('; ')).refusals;
}

/** The given name when no server has it, else a generated one that is free. */
async function freeName(run: Run, { name, pool, region }: ProvisionRequest): Promise<StepResult<string>> {
  for (let attempt = 0; attempt < NAME_ATTEMPTS; attempt += 1) {
    const candidate = name ?? generateNodeName(pool, region, run.ports.randomBytes);
    const holder = isNodeName(candidate) ? await run.api.findServerByName(candidate) : undefined;
    if (holder === undefined) return done(candidate);
    if (name === undefined) continue;
    return stop('server_name_taken', `the name ${name} is held by server ${holder.id}`, 'choose another --name');
  }
  return stop('server_name_taken', `${NAME_ATTEMPTS} generated names were taken`, 'give a --name');
}
