/** HTCondor's commands and terms, for the cases of every batch system. */
export const CONDOR_FAULTS = {
  submit: 'condor_submit',
  query: 'condor_q',
  remove: 'condor_rm',
  down: { message: "\nERROR: Can't find address of local schedd", status: 1 },
  removeDown:
    "SECMAN:2011:Connection closed during command authorization.\nCouldn't find/remove all jobs matching constraint (x)",
  held: ['-append', 'hold = True'],
  clock: true,
};

export const CONDOR_ARRAYS = {
  submit: 'condor_submit',
  isArray: '*GryphusOf*',
  refuses: { message: 'ERROR: a queue statement with items is not allowed here', status: 1 },
};
