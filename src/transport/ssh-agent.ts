import { connect } from 'node:net';
import { WireReader, wireString } from '../util/ssh-wire.ts';

/** A key or a certificate that an agent holds. */
export interface AgentIdentity {
  readonly blob: Buffer;
  readonly comment: string;
}

const REQUEST_IDENTITIES = 11;
const IDENTITIES_ANSWER = 12;
const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;
const RSA_SHA2_512 = 4;
const TIMEOUT_MS = 30_000;

/**
 * The keys and certificates that an agent holds (draft-ietf-sshm-ssh-agent, section 4.4). Fails if no agent answers.
 */
export async function agentIdentities(socket: string): Promise<readonly AgentIdentity[]> {
  const reader = new WireReader(await ask(socket, Buffer.from([REQUEST_IDENTITIES]), IDENTITIES_ANSWER));
  return Array.from({ length: reader.uint32() }, () => ({ blob: reader.string(), comment: reader.text() }));
}

/** An SSH signature blob over `data`, made with the key or certificate of `blob`. */
export async function agentSign(socket: string, blob: Buffer, data: Buffer): Promise<Buffer> {
  const flags = Buffer.alloc(4);
  flags.writeUInt32BE(new WireReader(blob).text().startsWith('ssh-rsa') ? RSA_SHA2_512 : 0);
  const request = Buffer.concat([Buffer.from([SIGN_REQUEST]), wireString(blob), wireString(data), flags]);
  return new WireReader(await ask(socket, request, SIGN_RESPONSE)).string();
}

/** One exchange with the agent; returns the body of its answer. */
function ask(path: string, request: Buffer, expected: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let got = Buffer.alloc(0);
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`The agent at ${path} does not answer.`)));
    socket.once('connect', () => socket.write(wireString(request)));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`The agent at ${path} closed the connection.`)));
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk]);
      if (got.length < 5 || got.length < 4 + got.readUInt32BE(0)) return;
      const body = got.subarray(5, 4 + got.readUInt32BE(0));
      if (got[4] === expected) resolve(body);
      else reject(new Error(`The agent at ${path} refused.`));
      socket.destroy();
    });
  });
}
