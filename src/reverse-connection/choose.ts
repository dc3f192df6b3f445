import type { ListenPlace } from '../transport/contract.ts';
import type { Way } from './home.ts';

/** The test result for each way home from a site; `undefined`: not tested yet. */
export interface Tested {
  readonly port: { readonly host: string; readonly port: number } | undefined;
  readonly connection: { readonly ok: true; readonly place: ListenPlace } | Failed | undefined;
  readonly relay:
    | {
        readonly ok: true;
        readonly port: number;
        readonly hosts: readonly string[];
        readonly target: string;
        readonly probes: readonly string[];
      }
    | Failed
    | undefined;
  readonly mailbox: { readonly ok: true; readonly directory: string } | Failed | undefined;
}

interface Failed {
  readonly ok: false;
  readonly why: string;
}

/** The ways by which workers of a site come home, and the reasons. */
export interface WaysView {
  /** In the order in which a worker tries them. */
  readonly ways: readonly Way[];
  /** A sentence for each kind of way, the chosen one first. */
  readonly because: readonly string[];
  /** Workers connected now, by the way they took. */
  readonly came?: { readonly connection: number; readonly mailbox: number };
}

/**
 * The agent's own port is the shortest way, then its ssh connection, then files. A worker gets all ways that may work,
 * because only its own node can tell what is reachable from there.
 */
export function chooseWays({ port, connection, relay, mailbox }: Tested): WaysView {
  const ways: Way[] = [];
  const because: string[] = [];
  const later: string[] = [];
  if (port !== undefined) {
    const name = `port ${port.host}:${port.port}`;
    const probe = relay?.ok === true ? (relay.probes[0] ?? 'not tried') : 'not tried';
    if (probe === 'ok' || probe === 'not tried') ways.push({ kind: 'port', ...port, own: true });
    if (probe === 'ok') because.push(`${name}: the login node reaches it.`);
    else if (probe === 'not tried') because.push(`${name}: it could not be tested from the login node.`);
    else later.push(`${name}: not used, the login node does not reach it (${probe}).`);
  }
  if (connection?.ok === true) {
    const place = connection.place.kind === 'socket' ? connection.place.path : `its port ${connection.place.port}`;
    if (connection.place.kind === 'socket') ways.push({ kind: 'socket', path: connection.place.path });
    else ways.push({ kind: 'port', host: '127.0.0.1', port: connection.place.port });
    because.push(`ssh: the agent's connection ends at the login node, in ${place}.`);
    if (relay?.ok === true && relay.target === 'ok') {
      for (const host of relay.hosts) ways.push({ kind: 'port', host, port: relay.port });
      because.push(`ssh: ${relay.hosts[0] ?? 'the login node'} passes the nodes' connections on, port ${relay.port}.`);
    } else if (relay !== undefined) {
      later.push(`ssh from the nodes: not used (${relay.ok ? relay.target : relay.why}).`);
    }
  } else if (connection !== undefined) later.push(`ssh: not used (${connection.why}).`);
  if (mailbox?.ok === true) {
    ways.push({ kind: 'mailbox', directory: mailbox.directory });
    because.push(`mailbox: files in ${mailbox.directory}, for nodes without a network.`);
  } else if (mailbox !== undefined) later.push(`mailbox: not used (${mailbox.why}).`);
  return { ways, because: [...because, ...later] };
}
