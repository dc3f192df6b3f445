// The licences of what is bundled into our files, which must accompany them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The packages in a bundle (esbuild's metafile), each with its licence, as one text. Throws if one does not state its
 * licence. `root`: the directory whose node_modules it was built from.
 */
export function noticesOf({ inputs }, root) {
  const dirs = Object.keys(inputs).flatMap(
    (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  );
  const notices = [...new Set(dirs)].map((dir) => notice(join(root, dir)));
  return notices.sort().join(`\n${'-'.repeat(80)}\n\n`);
}

function notice(dir) {
  const { name, version, license } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const file = readdirSync(dir).find((one) => /^(licen[cs]e|copying)(\.|-|$)/i.test(one));
  if (!license && !file) throw new Error(`${name} ${version} is bundled and says no licence.`);
  const text =
    file === undefined ? `${name} is under the ${license} licence.` : readFileSync(join(dir, file), 'utf8').trim();
  const more = existsSync(join(dir, 'NOTICE')) ? `\n\n${readFileSync(join(dir, 'NOTICE'), 'utf8').trim()}` : '';
  return `${name} ${version} (${license})\n\n${text}${more}\n`;
}
