/** Tests wait on conditions, never on time: `await waitFor(() => log.includes('ready'), { what: 'the gateway is ready' })`. */
export { waitUntil as waitFor } from '../../src/up/wait-until.ts';
