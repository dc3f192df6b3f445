import type { Mentioned } from '../expressions.ts';
import type { JobMaker } from '../maker.ts';
import { isUrl, urlScheme } from '../maker.ts';
import { byBytes, tokens, trim } from '../text.ts';
import { mightTransfer } from './universe.ts';

const DOMAIN = '(TARGET.FileSystemDomain == MY.FileSystemDomain)';
const VERSION = 'versioncmp(split(TARGET.CondorVersion)[1],"8.9.7") >= 0';

const ENCRYPTION = ['EncryptInputFiles', 'EncryptOutputFiles', 'DontEncryptInputFiles', 'DontEncryptOutputFiles'];

/** `TAR=plugin1; HTTP,HTTPS=plugin2`: the methods for which the job brings a plugin. */
function ownMethods(plugins: string): Set<string> {
  const lists = tokens(plugins, ';').flatMap((plugin) =>
    plugin.includes('=') ? [plugin.slice(0, plugin.indexOf('='))] : [],
  );
  return new Set(lists.flatMap((list) => tokens(list)).map((method) => method.toLowerCase()));
}

/** The URLs that inputs come from and outputs go to. */
function urls(job: JobMaker): string[] {
  const remaps = tokens(job.draft.string('TransferOutputRemaps') ?? '', ';');
  const destination = job.draft.string('OutputDestination');
  if (destination !== undefined && !isUrl(destination)) {
    job.warn('output_destination must be a URL, did you mean output_directory ?', 'output_destination');
  }
  return [
    ...tokens(job.draft.string('TransferInput') ?? '', ','),
    ...(destination === undefined ? [] : [destination]),
    ...remaps.flatMap((remap) => (remap.includes('=') ? [trim(remap.slice(remap.indexOf('=') + 1))] : [])),
  ].filter(isUrl);
}

/** The transfer methods that the machine must support. */
function neededMethods(job: JobMaker, plugins: string): string[] {
  const own = ownMethods(plugins);
  const methods = new Map(urls(job).map((url) => [urlScheme(url).toLowerCase(), urlScheme(url)]));
  return [...methods]
    .filter(([key]) => !own.has(key))
    .sort(([a], [b]) => byBytes(a, b))
    .map(([, method]) => method);
}

/** Stores like S3 are accessed with the user's keys. */
function checkKeys(job: JobMaker, methods: readonly string[]): void {
  if (!methods.some((method) => /^(s3|gs)$/i.test(method))) return;
  const keys = [
    ['EC2AccessKeyId', '[s3|aws|gs]_access_key_id_file'],
    ['EC2SecretAccessKey', '[s3|aws|gs]_secret_access_key_file'],
  ] as const;
  for (const [attribute, command] of keys) {
    if (job.draft.has(attribute)) continue;
    throw job.fault('transfer_input_files', `[s3|gs]:// URLs require ${command} to be set.`);
  }
}

function transferParts(job: JobMaker, spoken: Mentioned): string[] {
  const { draft } = job;
  const plugins = draft.string('TransferPlugins') ?? '';
  const parts = [plugins === '' ? 'TARGET.HasFileTransfer' : 'TARGET.HasJobTransferPlugins'];
  if (!spoken.of('HasPerFileEncryption') && ENCRYPTION.some((name) => draft.has(name))) {
    parts.push('TARGET.HasPerFileEncryption');
  }
  const newer = [
    draft.string('TransferCheckpoint') !== undefined,
    draft.bool('PreserveRelativePaths') === true,
    draft.string('WhenToTransferOutput') === 'ON_SUCCESS',
  ];
  if (newer.includes(true)) parts.push(VERSION);
  if (draft.bool('RequireCommonFilesTransfer')) parts.push('TARGET.HasCommonFilesTransfer >= 2');
  const methods = neededMethods(job, plugins);
  if (!spoken.of('HasFileTransferPluginMethods')) {
    parts.push(...methods.map((method) => `stringListIMember("${method}",TARGET.HasFileTransferPluginMethods)`));
    checkKeys(job, methods);
  }
  if (methods.length > 0) job.setString('WantTransferPluginMethods', methods.join(','));
  return parts;
}

/** The machine must share the file system, or accept file transfers. */
export function transferClause(job: JobMaker, spoken: Mentioned): string[] {
  if (!mightTransfer(job.kind.universe)) return [];
  const should = job.draft.string('ShouldTransferFiles') ?? 'IF_NEEDED';
  const sharing = spoken.of('FileSystemDomain') ? [] : [DOMAIN];
  if (should === 'NO') return sharing;
  if (spoken.of('HasFileTransfer') || spoken.of('HasJobTransferPlugins')) return [];
  const parts = `(${transferParts(job, spoken).join(' && ')})`;
  return [should === 'IF_NEEDED' && sharing.length > 0 ? `(${DOMAIN} || ${parts})` : parts];
}
