import type { Action, Firewall, Image, Location, PlacementGroup, Server, ServerType, SshKey } from './resources.ts';

/** Time as the client sees it. `now` is ms since the UNIX epoch; `sleep` ends early, by rejecting, when the signal aborts. */
export interface HetznerClock {
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A rule as we send it: inbound only, since outbound traffic is not restricted. */
export interface InboundRule {
  readonly direction: 'in';
  readonly protocol: 'tcp';
  readonly port: string;
  readonly source_ips: readonly string[];
  readonly description: string;
}

/** Everything a server needs at birth, in one request: it never boots without its firewall or its labels. */
export interface CreateServerRequest {
  readonly name: string;
  readonly serverType: string;
  readonly location: string;
  readonly imageId: number;
  readonly sshKeyIds: readonly number[];
  readonly firewallId: number;
  readonly placementGroupId: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly userData: string;
}

/** A created server with every action that has to succeed before it runs. */
export interface CreatedServer {
  readonly server: Server;
  readonly actions: readonly Action[];
}

/**
 * What provisioning asks of the provider, one resource a method. Small, so that a test can decorate every exchange.
 * All methods throw HetznerError; the create methods also throw AmbiguousCreateError. Lists follow their pages to the end.
 */
export interface HetznerApi {
  listServerTypes(): Promise<readonly ServerType[]>;
  listLocations(): Promise<readonly Location[]>;
  /** Images of this name in every architecture, deprecated ones too. */
  listImages(name: string): Promise<readonly Image[]>;
  listSshKeys(): Promise<readonly SshKey[]>;
  listPlacementGroups(): Promise<readonly PlacementGroup[]>;
  findFirewall(name: string): Promise<Firewall | undefined>;
  createFirewall(request: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly rules: readonly InboundRule[];
  }): Promise<Firewall>;
  /** Replaces all rules of the firewall. */
  setFirewallRules(firewallId: number, rules: readonly InboundRule[]): Promise<readonly Action[]>;
  /** Every server whose label `pushleft.node_id` is this node's id. */
  findServersOfNode(nodeId: string): Promise<readonly Server[]>;
  findServerByName(name: string): Promise<Server | undefined>;
  getServer(serverId: number): Promise<Server | undefined>;
  createServer(request: CreateServerRequest): Promise<CreatedServer>;
  /** Undefined when the server is gone already. */
  deleteServer(serverId: number): Promise<Action | undefined>;
  powerOnServer(serverId: number): Promise<Action>;
  getActions(actionIds: readonly number[]): Promise<readonly Action[]>;
}
