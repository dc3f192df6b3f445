import type { JobMaker, Step } from '../maker.ts';
import { booleanOf } from '../calculate.ts';

/** A submit is refused if the proxy ends within this many seconds: HTCondor's CRED_MIN_TIME_LEFT. */
const MIN_TIME_LEFT = 120;

function proxyFile(job: JobMaker): string | undefined {
  const named = job.param('x509userproxy');
  // A GRAM service admits nobody without a proxy.
  if (named !== undefined || !(job.boolParam('use_x509userproxy') ?? job.gridType === 'gt2')) return named;
  return job.env('X509_USER_PROXY') ?? `/tmp/x509up_u${job.world.uid}`;
}

function checkProxy(job: JobMaker, path: string): void {
  const named = ['x509userproxy', 'use_x509userproxy'].find((one) => job.scope.macros.find(one) !== undefined);
  const command = named ?? 'grid_resource';
  const remedy = ['Make a proxy with gryphus cred proxy init, or name one in x509userproxy.'];
  const facts = job.world.look(path);
  if (!facts?.readable || facts.directory) throw job.fault(command, `unable to read proxy file ${path}`, remedy);
  const answer = job.scope.policy.checkProxy?.(path);
  if (!answer) return;
  if (!answer.ok) throw job.fault(command, answer.reason, remedy);
  const left = answer.value.expiresAt - job.scope.now;
  if (left < 0) throw job.fault(command, `proxy ${path} has expired`, remedy);
  if (left < MIN_TIME_LEFT) throw job.fault(command, `proxy ${path}: lifetime too short`, remedy);
  for (const [name, value] of Object.entries(answer.value.attributes ?? {})) {
    if (typeof value === 'number') job.setInt(name, value);
    else job.setString(name, value);
  }
}

function setTokens(job: JobMaker): void {
  const use = job.param('use_scitokens', 'use_scitoken');
  const file = job.param('scitokens_file', 'ScitokensFile');
  const inherited = job.env('BEARER_TOKEN_FILE');
  const auto = use?.toLowerCase() === 'auto';
  const said = use === undefined || auto ? undefined : booleanOf(use);
  if (use !== undefined && !auto && said === undefined) {
    throw job.fault('use_scitokens', 'use_scitokens error. Value should be true, false, or auto.');
  }
  const wanted = said ?? (file !== undefined || (auto && (inherited ?? '') !== ''));
  if (!wanted) return;
  const path = file ?? inherited;
  if (path === undefined) {
    throw job.fault(
      'use_scitokens',
      'No Scitokens filename specified. Expected either scitokens_file command or the BEARER_TOKEN_FILE environment ' +
        'variable to be set.',
    );
  }
  job.setString('ScitokensFile', job.fullPath(path));
}

const MY_PROXY: readonly (readonly [attribute: string, kind: 'string' | 'int'])[] = [
  ['MyProxyHost', 'string'],
  ['MyProxyServerDN', 'string'],
  ['MyProxyCredentialName', 'string'],
  ['MyProxyRefreshThreshold', 'int'],
  ['MyProxyNewProxyLifetime', 'int'],
];

/** Where to refresh a proxy from. A password never goes into an ad. */
function setMyProxy(job: JobMaker): void {
  if (job.scope.macros.find('MyProxyPassword')) {
    throw job.fault('MyProxyPassword', 'MyProxyPassword: a submit file must not contain a password', [
      'Give it to gryphus cred once; the agent keeps it out of the queue.',
    ]);
  }
  for (const [attribute, kind] of MY_PROXY) {
    if (kind === 'string') {
      const value = job.param(attribute);
      if (value !== undefined) job.setString(attribute, value);
    } else {
      const value = job.intParam(attribute);
      if (value !== undefined) job.setInt(attribute, value);
    }
  }
}

export const credentials: Step = {
  name: 'x509userproxy',
  run(job) {
    const file = proxyFile(job);
    if (file !== undefined) {
      const path = job.fullPath(file);
      if (!job.scope.late) checkProxy(job, path);
      job.setString('x509userproxy', path);
    }
    setMyProxy(job);
    const lifetime = job.param('delegate_job_gsi_credentials_lifetime', 'DelegateJobGSICredentialsLifetime');
    if (lifetime !== undefined) {
      if (!/^\s*[+-]?\d+$/.test(lifetime)) {
        throw job.fault(
          'delegate_job_gsi_credentials_lifetime',
          `invalid integer setting delegate_job_gsi_credentials_lifetime = ${lifetime}`,
        );
      }
      job.setInt('DelegateJobGSICredentialsLifetime', Number(lifetime));
    }
    setTokens(job);
  },
};
