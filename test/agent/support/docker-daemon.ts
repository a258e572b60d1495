import { createServer } from 'node:http';

/** A daemon's socket that answers /version with this text, or never ('hold'); counts how often it is asked. */
export async function startDockerDaemon(
  socketPath: string,
  answer: string,
): Promise<{ readonly asked: () => number } & AsyncDisposable> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    if (answer === 'hold') return;
    response.writeHead(request.url === '/version' ? 200 : 404).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    asked: () => asked,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
