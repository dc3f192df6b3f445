import { integerOf } from '../calculate.ts';
import { hasReferences, wrapOperand } from '../expressions.ts';
import type { JobMaker, Step } from '../maker.ts';

const DEFAULT_RETRIES = 2;

/** An exit code after which there are no more retries, or an expression, as a clause of OnExitRemove. */
function untilClause(job: JobMaker, text: string): string {
  const code = hasReferences(text) ? undefined : integerOf(text);
  const small = code !== undefined && code >= -(2n ** 31n) && code < 2n ** 31n;
  const clause = small ? `ExitCode =?= ${code}` : code === undefined ? wrapOperand(text, '||') : undefined;
  if (clause !== undefined) return clause;
  throw job.fault('retry_until', `retry_until=${text} is invalid, it must be an integer or boolean expression.`);
}

function setPlain(job: JobMaker, remove: string | undefined, hold: string | undefined): void {
  if (remove !== undefined) job.setExpr('OnExitRemove', remove, 'on_exit_remove');
  if (hold !== undefined) job.setExpr('OnExitHold', hold, 'on_exit_hold');
}

/**
 * max_retries, success_exit_code and retry_until together form one clause of OnExitRemove; each of them enables retries
 * (manual, "max_retries").
 */
export const retries: Step = {
  name: 'max_retries',
  run(job) {
    const remove = job.param('on_exit_remove', 'OnExitRemove');
    const hold = job.param('on_exit_hold', 'OnExitHold');
    const most = job.intParam('max_retries', 'JobMaxRetries');
    const success = job.intParam('success_exit_code', 'JobSuccessExitCode', 'int32');
    const until = job.param('retry_until');
    if (most === undefined && success === undefined && until === undefined) return setPlain(job, remove, hold);
    const untilText = until === undefined ? undefined : untilClause(job, until);
    if (most !== undefined) job.setInt('JobMaxRetries', most);
    else if (!job.draft.has('JobMaxRetries')) job.setInt('JobMaxRetries', DEFAULT_RETRIES);
    if (hold !== undefined) job.setExpr('OnExitHold', hold, 'on_exit_hold');
    else if (!job.draft.has('OnExitHold')) job.setBool('OnExitHold', false);
    if (job.draft.has('OnExitRemove') && success === undefined && until === undefined) return;
    if (success !== undefined) job.setInt('JobSuccessExitCode', success);
    const clauses = [
      'NumJobCompletions > JobMaxRetries',
      `ExitCode =?= ${success === undefined ? 0 : 'JobSuccessExitCode'}`,
      ...(untilText === undefined ? [] : [untilText]),
      ...(remove === undefined ? [] : [removeClause(job, remove)]),
    ];
    job.setExpr('OnExitRemove', clauses.join(' || '), 'on_exit_remove');
  },
};

function removeClause(job: JobMaker, text: string): string {
  const clause = wrapOperand(text, '||');
  if (clause !== undefined) return clause;
  throw job.fault('on_exit_remove', `on_exit_remove=${text} is invalid, it must be a boolean expression.`);
}
