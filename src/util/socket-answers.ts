import { connect } from 'node:net';

/** Whether a server listens at a unix socket. */
export function socketAnswers(path: string): Promise<boolean> {
  return new Promise((settle) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      settle(true);
    });
    probe.once('error', () => settle(false));
  });
}
