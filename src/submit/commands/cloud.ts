import { CATALOGUE } from '../catalogue.ts';
import type { JobMaker } from '../maker.ts';
import { tokens } from '../text.ts';
import { isSimple, setSimple } from './simple.ts';

/** Commands that the ads of clouds have unchanged. */
const CLOUD = CATALOGUE.filter(isSimple).filter(({ fate }) => fate === 'not-run');

/** What each kind of cloud requires, in the order in which HTCondor checks for it. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  EC2: ['ec2_ami_id'],
  GCE: ['gce_image', 'gce_machine_type'],
  Azure: ['azure_image', 'azure_location', 'azure_size', 'azure_admin_username', 'azure_admin_key'],
};

const ROLE = 'FROM INSTANCE';

function setKeys(job: JobMaker): void {
  const keys = [
    ['ec2_access_key_id', 'aws_access_key_id_file', 'EC2AccessKeyId'],
    ['ec2_secret_access_key', 'aws_secret_access_key_file', 'EC2SecretAccessKey'],
  ] as const;
  for (const [command, alias, attribute] of keys) {
    const file = job.param(command, attribute) ?? job.param(alias);
    if (file === undefined) continue;
    if (file.toUpperCase() === ROLE) {
      job.setString('EC2AccessKeyId', ROLE);
      job.setString('EC2SecretAccessKey', ROLE);
    } else job.setString(attribute, job.fullPath(file));
  }
  if (job.gridType !== 'ec2') return;
  for (const [command, alias, attribute] of keys) {
    if (!job.draft.has(attribute)) {
      throw job.fault('grid_resource', `EC2 jobs require a '${command}' or '${alias}' parameter`);
    }
  }
}

function setKeyPair(job: JobMaker): void {
  const pair = job.param('ec2_keypair', 'EC2KeyPair') ?? job.param('ec2_keyp_air');
  if (pair !== undefined) job.setString('EC2KeyPair', pair);
  const file = job.param('ec2_keypair_file', 'EC2KeyPairFile') ?? job.param('ec2_key_pair_file');
  if (file === undefined) return;
  if (job.draft.has('EC2KeyPair')) {
    job.warn('EC2 job(s) contain both ec2_keypair && ec2_keypair_file, ignoring ec2_keypair_file', 'ec2_keypair_file');
  } else job.setString('EC2KeyPairFile', job.fullPath(file));
}

function setVolumes(job: JobMaker): void {
  const volumes = job.param('ec2_ebs_volumes', 'EC2ElasticBlockStorageVolumes');
  if (volumes === undefined) return;
  if (tokens(volumes, ',').some((volume) => volume.split(':').length !== 2)) {
    throw job.fault('ec2_ebs_volumes', "'ec2_ebs_volumes' has incorrect format.", [
      'Write "<instance_id>:<devicename>".',
    ]);
  }
  if (!job.draft.has('EC2AvailabilityZone')) {
    throw job.fault('ec2_ebs_volumes', "'ec2_ebs_volumes' requires 'ec2_availability_zone'");
  }
  job.setString('EC2ElasticBlockStorageVolumes', volumes);
}

/** `ec2_parameter_X = v` gives EC2ParamX; the names are also listed. */
function setParameters(job: JobMaker): void {
  const names = tokens(job.param('ec2_parameter_names', 'EC2ParamNames') ?? job.draft.string('EC2ParamNames') ?? '');
  for (const macro of job.scope.macros.all()) {
    const name = /^ec2_parameter_(?!names$)(.+)$/i.exec(macro.name)?.[1];
    if (name === undefined) continue;
    job.setString(`EC2Param_${name}`, macro.value);
    macro.used = true;
    if (!names.some((known) => known.replaceAll('.', '_').toLowerCase() === name.toLowerCase())) names.push(name);
  }
  if (names.length > 0) job.setString('EC2ParamNames', names.join(', '));
}

interface Pairs {
  readonly list: string;
  readonly attribute: string;
  readonly prefix: string;
  readonly attributePrefix: string;
}

/** Tags and labels: `ec2_tag_X = v`, and the list of their names, which is the only place to keep their case. */
function setPairs(job: JobMaker, pairs: Pairs): void {
  const names = tokens(job.param(pairs.list, pairs.attribute) ?? job.draft.string(pairs.attribute) ?? '');
  const has = (name: string): boolean => names.some((known) => known.toLowerCase() === name.toLowerCase());
  for (const { name } of job.scope.macros.all()) {
    const prefix = [pairs.prefix, pairs.attributePrefix].find((p) => name.toLowerCase().startsWith(p.toLowerCase()));
    const tag = prefix === undefined ? '' : name.slice(prefix.length);
    if (tag !== '' && !tag.toLowerCase().startsWith('names') && !has(tag)) names.push(tag);
  }
  for (const name of names) {
    const value = job.param(pairs.prefix + name, pairs.attributePrefix + name);
    if (value !== undefined) job.setString(pairs.attributePrefix + name, value);
  }
  const command = job.draft.string('Cmd');
  if (job.gridType === 'ec2' && !has('Name') && (job.boolParam('WantNameTag') ?? true) && command !== undefined) {
    job.setString(`${pairs.attributePrefix}Name`, command);
  }
  if (names.length > 0) job.setString(pairs.attribute, names.join(','));
}

/** EC2, GCE and Azure: accepted as by HTCondor, although no site here runs them. */
export function setCloud(job: JobMaker): void {
  setKeys(job);
  setKeyPair(job);
  for (const command of CLOUD) setSimple(job, command);
  const cloud = Object.keys(NEEDS).find((name) => name.toLowerCase() === job.gridType) ?? '';
  for (const command of NEEDS[cloud] ?? []) {
    if (job.draft.has(command.replaceAll('_', ''))) continue;
    throw job.fault('grid_resource', `${cloud} jobs require a "${command}" parameter`);
  }
  setVolumes(job);
  const metadata = job.param('gce_metadata', 'GceMetadata');
  if (metadata !== undefined) job.setString('GceMetadata', tokens(metadata, ',').join(','));
  const preemptible = job.boolParam('gce_preemptible', 'GcePreemptible');
  if (preemptible !== undefined) job.setBool('GcePreemptible', preemptible);
  setParameters(job);
  setPairs(job, { list: 'ec2_tag_names', attribute: 'EC2TagNames', prefix: 'ec2_tag_', attributePrefix: 'EC2Tag' });
  setPairs(job, {
    list: 'cloud_label_names',
    attribute: 'CloudLabelNames',
    prefix: 'cloud_label_',
    attributePrefix: 'CloudLabel',
  });
}
