import { imageView, serverTypeView } from './catalogue.ts';
import { selectedBy } from './firewall-view.ts';
import { apiTime } from './http.ts';
import { placementGroupView } from './placement-groups.ts';
import type { Project } from './project.ts';
import type { Server } from './state.ts';

const INCLUDED_TRAFFIC_BYTES = 20 * 1024 ** 4;

/** A server as the API shows it. Its user-data is not part of that. */
export function serverView(project: Project, server: Server): object {
  const { catalogue, state } = project;
  const type = catalogue.serverTypes.find(({ name }) => name === server.serverType);
  const image = catalogue.images.find(({ id }) => id === server.imageId);
  const group = state.placementGroups.find(({ id }) => id === server.placementGroupId);
  return {
    id: server.id,
    name: server.name,
    status: server.status,
    created: apiTime(server.createdMs),
    public_net: publicNetView(project, server),
    private_net: [],
    server_type: type === undefined ? null : serverTypeView(project, type),
    location: catalogue.locations.find(({ name }) => name === server.location) ?? null,
    image: image === undefined ? null : imageView(image),
    iso: null,
    rescue_enabled: false,
    locked: project.isLocked('server', server.id),
    backup_window: null,
    outgoing_traffic: 0,
    ingoing_traffic: 0,
    included_traffic: INCLUDED_TRAFFIC_BYTES,
    protection: { delete: false, rebuild: false },
    labels: server.labels,
    volumes: [],
    load_balancers: [],
    primary_disk_size: type?.disk ?? 0,
    placement_group: group === undefined ? null : placementGroupView(project, group),
  };
}

function publicNetView(project: Project, server: Server): object {
  const { id, ipv4, ipv6, firewalls } = server;
  const selected = project.state.firewalls
    .filter((firewall) => selectedBy(firewall, server) && !firewalls.some((applied) => applied.id === firewall.id))
    .map((firewall) => ({ id: firewall.id, status: 'applied' }));
  return {
    ipv4: ipv4 === null ? null : { id: id * 2, ip: ipv4, blocked: false, dns_ptr: reverseName(ipv4) },
    ipv6: ipv6 === null ? null : { id: id * 2 + 1, ip: ipv6, blocked: false, dns_ptr: [] },
    floating_ips: [],
    firewalls: [...firewalls, ...selected],
  };
}

const reverseName = (ipv4: string): string => `static.${ipv4.split('.').toReversed().join('.')}.clients.example.org`;
