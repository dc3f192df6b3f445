// Gryphus: passes connections from a cluster's nodes on to the agent's own connection, which ends at this login node.
//   node --input-type=module -e TEXT REQUEST
// REQUEST: JSON { target: { path } | { port }, probes: [{ host, port }] }.
// Prints one line of JSON: { port, hosts, target, probes }, the last two with `ok` or a reason. Ends with its standard
// input.
import { connect, createServer } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';

const { target, probes } = JSON.parse(process.argv[1]);
const PATIENCE_MS = 5000;

const test = (where) =>
  new Promise((resolve) => {
    const socket = connect(where);
    const end = (words) => {
      socket.destroy();
      resolve(words);
    };
    socket.setTimeout(PATIENCE_MS, () => end(`no answer within ${PATIENCE_MS / 1000} s`));
    socket.once('connect', () => end('ok'));
    socket.once('error', (error) => end(error.message));
  });

const server = createServer((from) => {
  const to = connect(target);
  for (const [one, other] of [
    [from, to],
    [to, from],
  ]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
    one.pipe(other);
  }
  from.setNoDelay(true);
  from.setKeepAlive(true, 30_000);
});

async function answer() {
  const addresses = Object.values(networkInterfaces())
    .flat()
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);
  process.stdout.write(
    `${JSON.stringify({
      port: server.address().port,
      hosts: [hostname(), ...addresses],
      target: await test(target),
      probes: await Promise.all(probes.map(test)),
    })}\n`,
  );
}

server.listen(0, () => void answer());

process.stdin.resume();
for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => process.exit(0));
