import { apiTime } from './http.ts';
import { parseLabelSelector } from './labels.ts';
import type { Project } from './project.ts';
import type { Firewall, Server } from './state.ts';

/** True when one of the firewall's label selectors holds for the server. */
export const selectedBy = (firewall: Firewall, server: Server): boolean =>
  firewall.selectors.some((selector) => parseLabelSelector(selector)(server.labels));

/** A firewall as the API shows it, with everything it is applied to. */
export function firewallView(project: Project, firewall: Firewall): object {
  const servers = project.serversBehind(firewall).map(({ id }) => ({ type: 'server', server: { id } }));
  const selectors = firewall.selectors.map((selector) => {
    const matches = parseLabelSelector(selector);
    return {
      type: 'label_selector',
      label_selector: { selector },
      applied_to_resources: project.state.servers
        .filter(({ labels }) => matches(labels))
        .map(({ id }) => ({ type: 'server', server: { id } })),
    };
  });
  const { id, name, labels, rules, createdMs } = firewall;
  return { id, name, labels, created: apiTime(createdMs), rules, applied_to: [...servers, ...selectors] };
}
