/** How to end the servers that this process started and no Scheduler looks after yet, by their sockets. */
const unattended = new Map<string, () => void>();
let isWatched = false;

/** Until it is attended to, the server ends with this process: also by Ctrl-C or a closed terminal, which call 'exit' listeners alone. */
export function endsWithUs(socket: string, end: () => void): void {
  unattended.set(socket, end);
  if (isWatched) return;
  isWatched = true;
  process.once('exit', () => {
    for (const one of unattended.values()) one();
  });
}

export function attended(socket: string): void {
  unattended.delete(socket);
}
