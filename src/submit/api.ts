/*
 * Submit descriptions, as other modules see them.
 *
 *   const cluster = parseSubmit({ text, file, cwd, world: localWorld(), owner, now });
 *   cluster.clusterAd            what the jobs share: name → expression text (old ClassAd syntax)
 *   cluster.procs({ cluster })   the jobs, made lazily: only what differs; `cluster` is $(Cluster), once it is known
 *   cluster.late                 late materialization: store cluster.digest(), make the other jobs with `materialize`
 *   fullAds(cluster)             whole ads (a dry run)
 *
 * Everything is pure except `localWorld`: the files, programs and environment of this machine. Tests supply their own.
 */
export {
  isV2Quoted,
  type Parsed,
  parseArgsV1,
  parseArgsV2,
  parseArgsV2Quoted,
  printArgsV1,
  printArgsV2,
  unescapeArgsV1,
} from './argv.ts';
export { NUMBER_ATTRIBUTES, STRING_ATTRIBUTES } from './attribute-types.ts';
export type { Cluster, ProcAd, ProcsRequest } from './cluster.ts';
export { freshCounters } from './commands/base.ts';
export { shouldTransfer } from './commands/transfer.ts';
export { type MaterializeRequest, type MaterializedProcs, materialize } from './digest.ts';
export { type Environment, parseEnvQuotedOrV1, parseEnvV1, parseEnvV2, printEnvV1, printEnvV2 } from './env.ts';
export type { SourcePlace, SubmitWarning } from './fault.ts';
export { fullAds } from './full-ads.ts';
export { javaOptions, jobArguments, jobEnvironment } from './job-words.ts';
export type { LateMaterialization } from './late.ts';
export { localWorld, type LocalWorldOptions } from './local-world.ts';
export { DEFAULT_MACHINE, DEFAULT_POLICY, type MachineFacts, type SubmitPolicy } from './options.ts';
export { parseSubmit, type ParseRequest } from './parse.ts';
export { CATALOGUE, isSubmitCommand, JOB_PLACES, type JobPlace, spellings, type SubmitCommand } from './catalogue.ts';
export type { FileFacts, WorldResult, SubmitWorld } from './world.ts';
