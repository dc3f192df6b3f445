import { jobOf } from './attempts.ts';
import type { FromClient, ToClient } from '../wire/client-wire.ts';
import type { CentralManager } from './central-manager.ts';
import type { Channel } from '../wire/frames.ts';
import type { FromCentralManager, FromWorker } from '../wire/wire.ts';

/** Who opened a shell: a user's command, or a node of a parallel job. */
type Client = Pick<Channel<FromClient, ToClient>, 'send'>;
type Said = Extract<FromWorker, { readonly t: 'shell-out' | 'shell-over' }>;
type Passed = Extract<FromClient, { t: 'shell-in' | 'shell-size' | 'shell-close' }>;

export interface CentralManagerShellsOptions {
  readonly centralManager: CentralManager;
  readonly toWorker: (instance: string, message: FromCentralManager, bytes?: Uint8Array) => void;
  readonly isHere: (instance: string) => boolean;
}

/** The exit status that ssh also uses for its own failures. */
const FAILED = 255;

/** Relays messages between users and their shells beside running jobs. */
export class CentralManagerShells {
  readonly #options: CentralManagerShellsOptions;
  readonly #open = new Map<string, { readonly client: Client; readonly instance: string }>();
  /** The workers whose nodes have started commands. */
  readonly #nodes = new Map<string, Client>();

  constructor(options: CentralManagerShellsOptions) {
    this.#options = options;
  }

  open(client: Client, { shell, job, command, tty }: Extract<FromClient, { t: 'shell' }>): void {
    const { centralManager, toWorker, isHere } = this.#options;
    const found = [...centralManager.attempts()].find(
      ({ key, phase }) => jobOf(key) === job && (phase === 'running' || phase === 'suspended'),
    );
    const refuse = (message: string) => client.send({ t: 'shell-over', shell, status: FAILED, message });
    if (found?.worker === undefined) return refuse('The job is not running in the pool.');
    if (!isHere(found.worker)) return refuse('The worker that runs the job is not connected now.');
    this.#open.set(shell, { client, instance: found.worker });
    toWorker(found.worker, {
      t: 'shell',
      shell,
      key: found.key,
      ...(command === undefined ? {} : { command }),
      ...(tty && { tty }),
    });
  }

  /** A node of a parallel job starts a command at another of its nodes. */
  startAtNode(instance: string, { shell, key, node, command }: Extract<FromWorker, { t: 'node-start' }>): void {
    const { centralManager, toWorker, isHere } = this.#options;
    const asking = centralManager.get(key);
    const client = this.#nodeClient(instance);
    const refuse = (message: string) => client.send({ t: 'shell-over', shell, status: FAILED, message });
    if (asking?.worker !== instance || !asking.node) return refuse('It is not a node of a parallel job.');
    const found = centralManager.gangs.sibling(asking, node);
    if (found?.worker === undefined) return refuse(`The job has no node ${node}.`);
    if (!isHere(found.worker)) return refuse(`The worker of node ${node} is not connected now.`);
    this.#open.set(shell, { client, instance: found.worker });
    toWorker(found.worker, { t: 'shell', shell, key: found.key, command, stays: true });
  }

  /** Relays what a node says to the command that it started. */
  passFromNode(instance: string, message: Extract<Passed, { t: 'shell-in' | 'shell-close' }>, bytes: Buffer): void {
    this.pass(this.#nodeClient(instance), message, bytes);
  }

  #nodeClient(instance: string): Client {
    const known = this.#nodes.get(instance);
    if (known) return known;
    const client: Client = {
      send: (message, bytes) => {
        if (message.t === 'shell-out' || message.t === 'shell-over') this.#options.toWorker(instance, message, bytes);
      },
    };
    this.#nodes.set(instance, client);
    return client;
  }

  /** Relays a message from the client that opened the shell; others are ignored. */
  pass(client: Client, message: Passed, bytes: Buffer): void {
    const open = this.#open.get(message.shell);
    if (open?.client !== client) return;
    this.#options.toWorker(open.instance, message, bytes);
    if (message.t === 'shell-close') this.#open.delete(message.shell);
  }

  /** Relays a message from the worker where the shell was opened; others are ignored. */
  hear(instance: string, message: Said, bytes: Buffer): void {
    const open = this.#open.get(message.shell);
    if (open?.instance !== instance) return;
    open.client.send(message, bytes);
    if (message.t === 'shell-over') this.#open.delete(message.shell);
  }

  /** The worker's connection ended: it closes its shells, but their exit statuses are lost. */
  away(instance: string): void {
    for (const [shell, open] of this.#open) {
      if (open.instance !== instance) continue;
      open.client.send({ t: 'shell-over', shell, status: FAILED, message: 'The connection with the worker ended.' });
      this.#open.delete(shell);
    }
  }

  /** The client that opened the shells has disconnected. */
  leave(client: Client): void {
    for (const [shell, open] of this.#open) {
      if (open.client !== client) continue;
      this.#options.toWorker(open.instance, { t: 'shell-close', shell });
      this.#open.delete(shell);
    }
  }
}
