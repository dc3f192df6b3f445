/** HTCondor's SYSTEM_IMMUTABLE_JOB_ATTRS and SYSTEM_SECURE_JOB_ATTRS (manual, schedd configuration). Lower case. */
const FIXED: ReadonlyMap<string, 'immutable' | 'secure'> = new Map([
  ...each('Owner ClusterId JobUniverse ProcId MyType TargetType User OsUser', 'immutable' as const),
  ...each(
    `x509userproxysubject x509UserProxyEmail x509UserProxyVOName x509UserProxyFirstFQAN x509UserProxyFQAN TotalSubmitProcs
      AuthTokenSubject AuthTokenIssuer AuthTokenGroups AuthTokenId AuthTokenScopes AuthTokenProject`,
    'secure' as const,
  ),
  // These follow from what the agent does.
  ...each('JobStatus EnteredCurrentStatus LastJobStatus', 'immutable' as const),
]);
/** Attributes of ours belong to the agent, except this one, which a description may set. */
const OURS_TO_SET = 'gryphusmaxwait';

/** Whether nobody may change this attribute of a job in the queue, and of which kind it is then. */
export function fixedAttribute(name: string): 'immutable' | 'secure' | undefined {
  const low = name.toLowerCase();
  return FIXED.get(low) ?? (low.startsWith('gryphus') && low !== OURS_TO_SET ? 'immutable' : undefined);
}

function each<K>(names: string, kind: K): (readonly [string, K])[] {
  return names.split(/\s+/).map((name) => [name.toLowerCase(), kind] as const);
}
