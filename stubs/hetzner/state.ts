import * as v from 'valibot';
import { ProcessIdentity } from '../../src/up/process-identity.ts';

const Id = v.pipe(v.number(), v.integer(), v.minValue(1));
const Labels = v.record(v.string(), v.string());
const Milliseconds = v.pipe(v.number(), v.integer());

const CommandSchema = v.picklist([
  'create_server',
  'start_server',
  'stop_server',
  'shutdown_server',
  'reboot_server',
  'reset_server',
  'delete_server',
  'set_firewall_rules',
  'apply_firewall',
  'remove_firewall',
]);

const ActionSchema = v.strictObject({
  id: Id,
  command: CommandSchema,
  resources: v.array(v.strictObject({ id: Id, type: v.picklist(['server', 'firewall']) })),
  status: v.picklist(['running', 'success', 'error']),
  startedMs: Milliseconds,
  /** When the running action ends; null: never. */
  dueMs: v.nullable(Milliseconds),
  finishedMs: v.nullable(Milliseconds),
  /** The action that has to succeed first, as `create_server` before `start_server`. */
  after: v.nullable(Id),
  /** The error it ends with; null: it succeeds. */
  error: v.nullable(v.strictObject({ code: v.string(), message: v.string() })),
});

const ServerSchema = v.strictObject({
  id: Id,
  name: v.string(),
  status: v.picklist(['initializing', 'starting', 'running', 'stopping', 'off', 'deleting']),
  createdMs: Milliseconds,
  serverType: v.string(),
  location: v.string(),
  imageId: Id,
  sshKeyIds: v.array(Id),
  firewalls: v.array(v.strictObject({ id: Id, status: v.picklist(['pending', 'applied']) })),
  placementGroupId: v.nullable(Id),
  labels: Labels,
  ipv4: v.nullable(v.string()),
  ipv6: v.nullable(v.string()),
  userData: v.string(),
  /** The leader of the process group that stands for the machine; recorded until that group was ended. */
  process: v.nullable(ProcessIdentity),
});

const FirewallRuleSchema = v.strictObject({
  description: v.nullable(v.string()),
  direction: v.picklist(['in', 'out']),
  protocol: v.picklist(['tcp', 'udp', 'icmp', 'esp', 'gre']),
  port: v.nullable(v.string()),
  source_ips: v.array(v.string()),
  destination_ips: v.array(v.string()),
});

const FirewallSchema = v.strictObject({
  id: Id,
  name: v.string(),
  createdMs: Milliseconds,
  labels: Labels,
  rules: v.array(FirewallRuleSchema),
  /** Label selectors it is applied to; the servers it is applied to directly carry its id. */
  selectors: v.array(v.string()),
});

const SshKeySchema = v.strictObject({
  id: Id,
  name: v.string(),
  fingerprint: v.string(),
  publicKey: v.string(),
  labels: Labels,
  createdMs: Milliseconds,
});

const PlacementGroupSchema = v.strictObject({ id: Id, name: v.string(), labels: Labels, createdMs: Milliseconds });

/** Everything the stub remembers, and the form of its state file. `userData` is the only secret in it. */
export const StubStateSchema = v.strictObject({
  nextId: Id,
  actions: v.array(ActionSchema),
  servers: v.array(ServerSchema),
  firewalls: v.array(FirewallSchema),
  sshKeys: v.array(SshKeySchema),
  placementGroups: v.array(PlacementGroupSchema),
});

/** Everything the stub remembers. */
export type StubState = v.InferOutput<typeof StubStateSchema>;
/** What an action does. */
export type Command = v.InferOutput<typeof CommandSchema>;
/** One asynchronous task; `dueMs` says when it ends and `error` how. */
export type Action = v.InferOutput<typeof ActionSchema>;
/** One virtual machine. */
export type Server = v.InferOutput<typeof ServerSchema>;
/** One firewall with its rules in the API's own form. */
export type Firewall = v.InferOutput<typeof FirewallSchema>;
/** One firewall rule, canonical. */
export type FirewallRule = v.InferOutput<typeof FirewallRuleSchema>;
/** One SSH public key. */
export type SshKey = v.InferOutput<typeof SshKeySchema>;
/** One spread placement group; its members are the servers that name it. */
export type PlacementGroup = v.InferOutput<typeof PlacementGroupSchema>;
