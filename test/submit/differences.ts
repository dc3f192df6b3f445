/**
 * Where an answer differs from condor_submit's on purpose; docs/compatibility.md tells users the same. `error`: ours refuses
 * what the real tool takes, crashes on or never ends with. `ignore`: attributes that are not compared.
 */
export const DIFFERENCES: Readonly<Record<string, { readonly error?: RegExp; readonly ignore?: readonly string[] }>> = {
  // A missing input is found at the submit, not at the site.
  '05univ/grid-15': { error: /on Line 4 of job\.sub: Can't open "\/jobs\/dir\/a\.txt" for reading/ },
  '08files/tif missing': { error: /on Line 2 of job\.sub: Can't open "\/jobs\/dir\/nosuch\.dat" for reading/ },
  // queue 0 makes one job there.
  '09err/e-94': { error: /on Line 3 of job\.sub: Queue count out of range: queue 0 makes no job/ },
  // Crashes there.
  '06res/gpus-27': { error: /on Line 2 of job\.sub: request_foo has no value/ },
  '10more/crash-04': { error: /on Line 2 of job\.sub: request_foo has no value/ },
  // Never ends there.
  '09err/circular in resource': { error: /on Line 2 of job\.sub: the macro in '.*' has no end/ },
  // The recording holds this attribute in another form: no ClassAd has such a name.
  '09err/e-32': { ignore: ['bad-name'] },
};

/** Attributes that the recordings leave out, because they differ from run to run. */
export const UNRECORDED = new Set(['QDate', 'Owner', 'MyType', 'TargetType', 'EnteredCurrentStatus']);
