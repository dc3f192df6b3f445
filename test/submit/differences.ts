/**
 * Intended differences from condor_submit's answers; docs/compatibility.md lists them for users. `error`: ours refuses
 * what the real tool accepts, crashes on or never finishes. `ignore`: attributes that are not compared.
 */
export const DIFFERENCES: Readonly<Record<string, { readonly error?: RegExp; readonly ignore?: readonly string[] }>> = {
  // A missing input is reported at submit, not at the site.
  '05univ/grid-15': { error: /on Line 4 of job\.sub: Can't open "\/jobs\/dir\/a\.txt" for reading/ },
  '08files/tif missing': { error: /on Line 2 of job\.sub: Can't open "\/jobs\/dir\/nosuch\.dat" for reading/ },
  // queue 0 queues one job there.
  '09err/e-94': { error: /on Line 3 of job\.sub: Queue count out of range: queue 0 queues no job/ },
  // It crashes there.
  '06res/gpus-27': { error: /on Line 2 of job\.sub: request_foo has no value/ },
  '10more/crash-04': { error: /on Line 2 of job\.sub: request_foo has no value/ },
  // It never ends there.
  '09err/circular in resource': { error: /on Line 2 of job\.sub: the macro in '.*' is endless/ },
  // The recording has this attribute in another form: a ClassAd cannot have such a name.
  '09err/e-32': { ignore: ['bad-name'] },
};

/** Attributes that the recordings leave out, because they differ from run to run. */
export const UNRECORDED = new Set(['QDate', 'Owner', 'MyType', 'TargetType', 'EnteredCurrentStatus']);
