/*
 * Scripts of other batch systems, as other modules see them.
 *
 *   isScript(text)                   a program of its own, not a submit description
 *   readScript(text, { file })       its directives: what it asks for, and for which system
 *   describeScript(script, wanted)   the submit description that means the same, with warnings
 *
 * Everything is pure. The tables in slurm.ts, pbs.ts, sge.ts, lsf.ts and variables.ts are also the documentation.
 */
export { JOB_NUMBERS } from './array.ts';
export { describeScript, type Destination, type Submitter, type Translation, type Wanted } from './description.ts';
export { SYSTEMS, type System } from './model.ts';
export { type BatchScript, DIALECTS, isScript, readScript } from './read.ts';
