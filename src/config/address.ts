import { GryphusError } from '../errors.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * `host:port`, `[address]:port`, or just a port, for all addresses. 'bad-config' names the key with an invalid value.
 */
export function parseAddress(text: string, key: string): Address {
  const found = /^(?:(?:\[([0-9A-Fa-f:]+)\]|([^:[\]\s]+)):)?(\d{1,5})$/.exec(text.trim());
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) {
    throw new GryphusError('bad-config', `${key} = "${text}" is not an address and port.`, {
      suggestions: [`Write it as "host:port", for example ${key} = "0.0.0.0:9618".`],
    });
  }
  return { host: found[1] ?? found[2] ?? '::', port };
}
