// Writes the pages that are generated from the program itself: docs/cli/ from the commands, docs/configuration.md from
// the
// tables that parse the configuration, docs/submit-commands.md from that of the submit commands, docs/batch-scripts.md from
// those of other systems' options. Needs a build.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allCommands } from '../dist/commands/registry.js';
import { configDocs } from '../dist/config/docs.js';
import { commandPage, overviewPage, pageName } from '../dist/commands/show/docs.js';
import { batchScriptsPage } from '../dist/batch-script/docs.js';
import { submitCommandsPage } from '../dist/submit/catalogue-docs.js';
import { manPages } from '../dist/commands/show/man.js';
import { formats } from './man.mjs';
import { root } from './setup.mjs';

const commands = await allCommands();
const cli = join(root, 'docs/cli');
mkdirSync(cli, { recursive: true });
for (const name of readdirSync(cli)) rmSync(join(cli, name));
writeFileSync(join(cli, 'README.md'), overviewPage(commands));
for (const [id, command] of Object.entries(commands)) writeFileSync(join(cli, pageName(id)), commandPage(id, command));
writeFileSync(join(root, 'docs/configuration.md'), configDocs());
writeFileSync(join(root, 'docs/submit-commands.md'), submitCommandsPage());
writeFileSync(join(root, 'docs/batch-scripts.md'), batchScriptsPage());

// npm installs only the manual pages that package.json lists.
const packageFile = join(root, 'package.json');
const about = JSON.parse(readFileSync(packageFile, 'utf8'));
const made = manPages(commands, await formats(join(root, 'dist'), '.js'), { version: about.version, date: '' });
about.man = made.map(({ file }) => `./dist/man/${file}`);
writeFileSync(packageFile, `${JSON.stringify(about, undefined, 2)}\n`);
