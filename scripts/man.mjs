// The manual pages of a build, in its directory man/: of section 1 those of the commands, of section 5 those of the formats.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const load = (path) => import(pathToFileURL(path).href);

/** `sources`: the sources' directory, of files that end with `ending`. */
export async function formats(sources, ending) {
  const { configDocs } = await load(join(sources, `config/docs${ending}`));
  const { submitCommandsPage } = await load(join(sources, `submit/catalogue-docs${ending}`));
  const { batchScriptsPage } = await load(join(sources, `batch-script/docs${ending}`));
  return [
    {
      name: 'gryphus-configuration',
      summary: 'the configuration of Gryphus, its sites and credentials',
      markdown: configDocs(),
    },
    { name: 'gryphus-submit-commands', summary: 'the commands of a submit file', markdown: submitCommandsPage() },
    { name: 'gryphus-batch-scripts', summary: "scripts with other systems' options", markdown: batchScriptsPage() },
  ];
}

/** `built`: the compiled sources. `root`: the checkout. */
export async function writeManPages(built, root) {
  const { allCommands } = await load(join(built, 'commands/registry.js'));
  const { manPages } = await load(join(built, 'commands/show/man.js'));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  // https://reproducible-builds.org/docs/source-date-epoch/: seconds
  const epoch = process.env.SOURCE_DATE_EPOCH;
  const date = (epoch ? new Date(Number(epoch) * 1000) : new Date()).toISOString().slice(0, 10);
  mkdirSync(join(built, 'man'));
  for (const { file, text } of manPages(await allCommands(), await formats(built, '.js'), { version, date }))
    writeFileSync(join(built, 'man', file), text);
}
