/** The oldest major version with what our scripts use. */
const OLDEST = 6;

interface Unfit {
  readonly why: string;
  readonly remedy: string;
}

/** Why a Redis (or Valkey) that says this of itself (INFO) cannot hold a queue; `undefined` if it can. */
export function unfitness(info: string): Unfit | undefined {
  const said = (name: string) => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1] ?? '';
  const mode = said('redis_mode') || said('server_mode');
  if (mode === 'cluster')
    return {
      why: 'it is a node of a Redis Cluster, and each change of a job is one step over many keys',
      remedy: 'Name a single Redis.',
    };
  if (mode === 'sentinel')
    return {
      why: 'it is a Sentinel, which holds no data',
      remedy: 'Name the Redis that it watches; gryphus does not follow a failover.',
    };
  if (said('role') === 'slave') return { why: 'it is a replica, which takes no changes', remedy: 'Name its primary.' };
  const version = said('redis_version');
  if (Number(version.split('.')[0]) < OLDEST)
    return { why: `it is version ${version}, and ${OLDEST} is the oldest that works`, remedy: 'Upgrade it.' };
  const policy = said('maxmemory_policy');
  if (Number(said('maxmemory')) > 0 && policy !== 'noeviction' && policy !== '')
    return {
      why: `it deletes keys when its memory is full (maxmemory-policy ${policy})`,
      remedy: 'Set maxmemory-policy to noeviction there.',
    };
  return undefined;
}
