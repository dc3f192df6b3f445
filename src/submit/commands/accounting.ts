import type { JobMaker, Step } from '../maker.ts';
import { byBytes, tokens } from '../text.ts';

const ATTRIBUTE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function isLimit(text: string): boolean {
  const [name = ''] = text.split(':');
  const dot = name.indexOf('.');
  if (dot < 0) return ATTRIBUTE_NAME.test(name);
  return ATTRIBUTE_NAME.test(name.slice(0, dot)) && ATTRIBUTE_NAME.test(name.slice(dot + 1));
}

export const concurrencyLimits: Step = {
  name: 'concurrency_limits',
  run(job) {
    const list = job.param('concurrency_limits');
    const expr = job.param('concurrency_limits_expr');
    if (list === undefined) {
      if (expr !== undefined) job.setExpr('ConcurrencyLimits', expr, 'concurrency_limits_expr');
      return;
    }
    if (expr !== undefined) {
      throw job.fault(
        'concurrency_limits_expr',
        "concurrency_limits and concurrency_limits_expr can't be used together",
      );
    }
    const limits = tokens(list.toLowerCase());
    const wrong = limits.find((limit) => !isLimit(limit));
    if (wrong !== undefined) throw job.fault('concurrency_limits', `Invalid concurrency limit '${wrong}'`);
    if (limits.length > 0) job.setString('ConcurrencyLimits', limits.sort(byBytes).join(','));
  },
};

const NICE_GROUP = 'nice-user';

function group(job: JobMaker): string | undefined {
  const named = job.param('accounting_group', 'AccountingGroup');
  if (!(job.boolParam('nice_user', 'NiceUser') ?? false)) return named;
  if (named !== undefined && named !== NICE_GROUP) {
    job.warn('nice_user conflicts with accounting_group. nice_user will be ignored', 'nice_user');
  }
  job.setInt('MaxJobRetirementTime', 0);
  return named ?? NICE_GROUP;
}

function checkName(job: JobMaker, command: string, name: string): void {
  if (/[ \t\n\v\f\r]/.test(name))
    throw job.fault(command, `Invalid ${command}: ${name}`, ['It must not contain blanks.']);
}

export function accounting(owner: string): Step {
  return {
    name: 'accounting_group',
    run(job) {
      const project = job.param('project_name', 'ProjectName');
      if (project !== undefined) job.setString('ProjectName', project);
      const named = group(job);
      const written = job.param('accounting_group_user', 'AcctGroupUser');
      if (named === undefined && written === undefined) return;
      const user = written ?? owner;
      if (named !== undefined) checkName(job, 'accounting_group', named);
      checkName(job, 'accounting_group_user', user);
      job.setString('AcctGroupUser', user);
      if (named !== undefined) job.setString('AcctGroup', named);
      job.setString('AccountingGroup', named === undefined ? user : `${named}.${user}`);
    },
  };
}
