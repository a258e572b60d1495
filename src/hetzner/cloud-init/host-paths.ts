/** Where the values lie on a host. The agent and readUserData know the same places. */
export const HOST_PATHS = {
  environment: '/etc/pushleft/agent.env',
  gatewayCa: '/etc/pushleft/gateway-ca.pem',
  releaseKey: '/etc/pushleft/release-key.pem',
  enrollmentSecret: '/var/lib/pushleft/enrollment-secret',
} as const;
