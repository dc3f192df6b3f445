import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

export interface Asset {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly gzip: Buffer;
}

const FILES = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/app.js', 'app.js', 'text/javascript; charset=utf-8'],
  ['/app.css', 'app.css', 'text/css; charset=utf-8'],
  ['/icon.svg', 'icon.svg', 'image/svg+xml'],
] as const;

/** The page's own files, read once. They hold nothing of any agent. */
export class Assets {
  readonly all: ReadonlyMap<string, Asset>;

  constructor(dir: string) {
    this.all = new Map(
      FILES.map(([path, file, type]): [string, Asset] => {
        const plain = readFileSync(join(dir, file));
        const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
        return [path, { type, etag, plain, gzip: gzipSync(plain, { level: 9 }) }];
      }),
    );
  }
}
