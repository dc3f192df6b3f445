import { fixedAttribute } from '../../job/fixed-attributes.ts';
import { CATALOGUE } from '../../submit/api.ts';

/**
 * Attributes of submit commands that a running job may set: its policy, and what it needs of a machine. All others name
 * files, programs, accounts or commands at home, or choose a site. Lower case.
 */
const FREE: ReadonlySet<string> = new Set(
  `allowedexecuteduration allowedjobduration coresize cudaversion diskusage gpusmaxcapability gpusmincapability
  gpusminmemory gpusminruntime imagesize jobdescription jobleaseduration jobmaxretries jobmaxvacatetime jobprio
  jobsuccessexitcode killsig killsigtimeout maxjobretirementtime maxtransferinputmb maxtransferoutputmb
  nextjobstartdelay onexithold onexitholdreason onexitholdsubcode onexitremove periodichold periodicholdreason
  periodicholdsubcode periodicrelease periodicremove periodicvacate rank removekillsig holdkillsig requestcpus requestdisk
  requestgpus requestmemory requiregpus requirements`.split(/\s+/),
);

/** Attributes with a meaning at home that no submit command sets under this name. Lower case. */
const HOMES_OWN: ReadonlySet<string> = new Set(
  `accountinggroup args containerimagefullpath containerimagesource containerofflinereason dagparentnodenames
  deferralprep dockeroverrideentrypoint env error input jobmaterializedigestfile jobmaterializepaused jobsubmitfile
  output projectname transferinputstarted wantcontainer wantdelayedupdates wantdocker wantglidein x509userproxysubject`.split(
    /\s+/,
  ),
);

const COMMANDS: ReadonlySet<string> = new Set(
  CATALOGUE.flatMap(({ attribute }) => (attribute === undefined ? [] : [attribute.toLowerCase()])),
);

/** Whether a running job may set this attribute of itself: the machine that runs it must gain nothing at home by it. */
export function isSettable(name: string): boolean {
  const low = name.toLowerCase();
  if (fixedAttribute(name) !== undefined || HOMES_OWN.has(low)) return false;
  if (/^(?:gryphus|transformbody_)/.test(low)) return false;
  return FREE.has(low) || !COMMANDS.has(low);
}
