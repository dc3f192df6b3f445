import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { POOL_SITE, SCHEDULER_SITE } from '../../src/config/sites.ts';
import { OutOfPlace } from '../../src/enqueue/out-of-place.ts';
import type { Destination } from '../../src/enqueue/site-choice.ts';
import { SiteChooser } from '../../src/enqueue/site-choice.ts';
import { CATALOGUE, fullAds, isSubmitCommand, type JobPlace, type SubmitCommand } from '../../src/submit/api.ts';
import { gryphus } from '../commands/cli.ts';
import { jobs, refusal, submit, world } from './support.ts';

const SRC = join(import.meta.dirname, '../../src');
const of = (fate: SubmitCommand['fate']) => CATALOGUE.filter((command) => command.fate === fate);
const named = (commands: readonly SubmitCommand[]) => commands.map((command) => [command.name, command] as const);

/** The commands of condor_submit 25, as its sources declare them. */
const HTCONDOR =
  `accounting_group accounting_group_user allow_arguments_v1 allow_environment_v1 allowed_execute_duration
  allowed_job_duration append_files arc_application arc_data_staging arc_resources arc_rte arguments arguments2
  aws_access_key_id_file aws_region aws_secret_access_key_file azure_admin_key azure_admin_username azure_auth_file azure_image
  azure_location azure_size batch_extra_submit_args batch_id batch_name batch_project batch_queue batch_runtime
  buffer_block_size buffer_files buffer_size checkpoint_destination checkpoint_exit_code cloud_label_names common_input_files
  compress_files concurrency_limits concurrency_limits_expr container_image container_is_common container_service_names
  container_target_dir copy_to_spool core_size cron_day_of_month cron_day_of_week cron_hour cron_minute cron_month
  cron_prep_time cron_window cuda_version dagman_job_id dagman_log deferral_prep_time deferral_time deferral_window
  delegate_job_gsi_credentials_lifetime description disk_usage docker_image docker_network_type docker_override_entrypoint
  docker_pull_policy docker_send_credentials dont_encrypt_input_files dont_encrypt_output_files ec2_access_key_id ec2_ami_id
  ec2_availability_zone ec2_block_device_mapping ec2_ebs_volumes ec2_elastic_ip ec2_iam_profile_arn ec2_iam_profile_name
  ec2_instance_type ec2_keyp_air ec2_key_pair_file ec2_keypair ec2_keypair_file ec2_parameter_names ec2_secret_access_key
  ec2_security_groups ec2_security_ids ec2_spot_price ec2_tag_names ec2_user_data ec2_user_data_file ec2_vpc_ip ec2_vpc_subnet
  email_attributes encrypt_execute_directory encrypt_input_files encrypt_output_files env environment environment2
  erase_output_and_error_on_restart error executable exit_requirements fetch_files file_remaps gce_account gce_auth_file
  gce_image gce_json_file gce_machine_type gce_metadata gce_metadata_file gce_preemptible get_env getenv
  gpus_maximum_capability gpus_minimum_capability gpus_minimum_memory gpus_minimum_runtime grid_resource gs_access_key_id_file
  gs_secret_access_key_file hold hold_kill_sig image_size initial_dir initialdir input jar_files java_vm_args
  java_vm_arguments java_vm_arguments2 job_ad_information_attrs job_iwd job_lease_duration job_machine_attrs
  job_machine_attrs_history_length job_max_vacate_time jobset keep_claim_idle kill_sig kill_sig_timeout leave_in_queue
  load_profile local_files log log_xml machine_count manifest manifest_dir match_list_length materialize_max_idle max_idle
  max_job_retirement_time max_materialize max_retries max_transfer_input_mb max_transfer_output_mb memory_usage
  mount_under_scratch next_job_start_delay nice_user node_count NodeCount noop_job noop_job_exit_code noop_job_exit_signal
  notification notify_user on_evict_checks on_exit_hold on_exit_hold_reason on_exit_hold_subcode on_exit_remove output
  output_destination output_directory parallel_script_shadow parallel_script_starter periodic_hold periodic_hold_reason
  periodic_hold_subcode periodic_release periodic_remove periodic_vacate preferences preserve_relative_paths
  primary_unix_group prio priority public_input_files rank remote_initialdir remove_kill_sig rendezvousdir request_cpus
  request_disk request_gpus request_memory require_gpus requirements retry_request_memory retry_request_memory_increase
  retry_request_memory_max retry_until run_as_owner s3_access_key_id_file s3_secret_access_key_file scitokens_file
  send_credential shell should_transfer_files skip_filechecks skip_if_dataflow stack_size starter_debug starter_log stderr
  stdin stdout stream_error stream_input stream_output submit_event_notes submit_event_user_notes success_exit_code
  suspend_job_at_exec tool_daemon_args tool_daemon_arguments tool_daemon_arguments2 tool_daemon_cmd tool_daemon_error
  tool_daemon_input tool_daemon_output transfer_checkpoint_files transfer_container transfer_error transfer_executable
  transfer_input transfer_input_files TransferInputFiles transfer_output transfer_output_files TransferOutputFiles
  transfer_output_remaps transfer_plugins ulog_execute_attrs universe use_oauth_services UseOAuthServices use_scitoken
  use_scitokens use_x509userproxy vm_checkpoint vm_disk vm_macaddr vm_memory vm_networking vm_networking_type
  vm_no_output_vm vm_type vm_vcpus vm_vnc want_ads want_graceful_removal want_io_proxy want_job_networking WantNameTag
  when_to_transfer_output x509userproxy xen_initrd xen_kernel xen_kernel_params xen_root`.split(/\s+/);

/** A value for a command, if its kind does not determine one, and the commands that it requires. */
const SAMPLES: Readonly<Record<string, string>> = {
  accounting_group: 'g',
  accounting_group_user: 'u',
  batch_queue: 'q',
  checkpoint_engine: 'criu',
  batch_project: 'p',
  batch_extra_submit_args: '-x',
  concurrency_limits: 'lic',
  concurrency_limits_expr: '"lic"',
  container_image: 'docker://a/b',
  container_service_names: 'http\nhttp_container_port = 80\ncontainer_image = docker://a/b',
  container_target_dir: '/x\ncontainer_image = docker://a/b',
  cuda_version: '12.1',
  docker_image: 'a/b',
  exit_requirements: 'true',
  gpus_minimum_memory: '4G\nrequest_gpus = 1',
  gpus_minimum_capability: '7.0\nrequest_gpus = 1',
  gpus_maximum_capability: '9.0\nrequest_gpus = 1',
  gpus_minimum_runtime: '12\nrequest_gpus = 1',
  require_gpus: 'Capability > 7\nrequest_gpus = 1',
  hold_kill_sig: 'SIGINT',
  java_vm_arguments2: '"-x"',
  kill_sig: 'SIGINT',
  remove_kill_sig: 'SIGINT',
  nice_user: 'true',
  on_evict_checks: 'A\ntransform_body_A = SET B 1',
  output_destination: 'http://h/d/',
  output_directory: '.',
  retry_request_disk: '4G\nrequest_disk = 1G',
  retry_request_memory: '4G\nrequest_memory = 1G',
  retry_request_memory_increase: '1G\nrequest_memory = 1G\nretry_request_memory_max = 4G',
  retry_request_memory_max: '4G\nrequest_memory = 1G',
  requirements: 'Memory > 5',
  scitokens_file: 'job.sh',
  use_scitokens: 'true\nscitokens_file = job.sh',
  should_transfer_files: 'YES',
  when_to_transfer_output: 'ON_SUCCESS\nshould_transfer_files = YES',
  tool_daemon_cmd: 'job.sh',
  transfer_input_files: 'job.sh',
  transfer_common_input: 'job.sh',
  public_input_files: 'job.sh',
  transfer_output_files: 'o',
  transfer_output_remaps: '"a = b"',
  stream_input: 'true\ninput = job.sh',
  stream_output: 'true\noutput = o',
  stream_error: 'true\nerror = e',
  transfer_input: 'false\ninput = job.sh',
  transfer_output: 'false\noutput = o',
  transfer_error: 'false\nerror = e',
  use_oauth_services: 'box',
  want_graceful_removal: 'false',
  Remote_universe: 'vanilla',
  Remote_Remote_universe: 'vanilla',
};
const BY_KIND: Readonly<Record<string, string>> = { bool: 'true', int: '3', natural: '3', expr: '3' };

function lineFor({ name, attribute, kind, idle }: SubmitCommand): string {
  const value = SAMPLES[name] ?? BY_KIND[kind ?? ''] ?? (name.startsWith('+') ? 'true' : '7');
  const written = name.startsWith('+') ? `+${attribute}` : name;
  return `${written} = ${kind === 'bool' && idle.test('true') ? 'false' : value}`;
}

/** Warnings for the description's second line. */
function warnings(lines: string): readonly string[] {
  const cluster = submit(`executable = job.sh\n${lines}\nqueue`);
  return cluster.warnings.filter(({ line }) => line === 2).map(({ message }) => message);
}

/** A comment that names an attribute does nothing. */
const codeOf = (text: string) => text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');

describe('every submit command', () => {
  it('that HTCondor has is known, and each once', () => {
    expect(HTCONDOR.filter((name) => !isSubmitCommand(name))).toEqual([]);
    const names = CATALOGUE.map(({ name }) => name.toLowerCase());
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    expect(names.length).toBeGreaterThan(227);
  });

  it('that is looked up when jobs are made is known', () => {
    const dir = join(SRC, 'submit/commands');
    const spelled = new Set(CATALOGUE.flatMap(({ name, alias, attribute }) => [name, alias, attribute]));
    // Typing errors that are reported one by one, and names that are grouped.
    const odd = /^(MY\.|request_gpus?_memory$|\$|ProjectName$|project_name$)/;
    const looked = readdirSync(dir).flatMap((file) => {
      const text = readFileSync(join(dir, file), 'utf8');
      return [...text.matchAll(/\.(?:p|boolP|intP)aram\(\s*'([^']+)'/g)].map((found) => found[1] ?? '');
    });
    expect(looked.length).toBeGreaterThan(80);
    expect(looked.filter((name) => !spelled.has(name) && !odd.test(name))).toEqual([]);
  });

  /** What they ask for is so for every job, whether it asks or not. */
  const ALWAYS = ['container_is_common', 'encrypt_input_files', 'encrypt_output_files'];
  /** The only code below src/submit that may do a command: what makes the ad of it, or reads it when the job starts. */
  const MAKES = ['transfer_container', 'skip_filechecks', 'allow_arguments_v1', 'allow_environment_v1'];
  const READS = 'submit/job-words.ts';

  it('is done by code outside src/submit that reads it, or is always so', () => {
    const wrong = of('done').filter(({ by, attribute, name, says }) => {
      if (by === undefined) return says === undefined || !ALWAYS.includes(name);
      if (by.startsWith('submit/') && by !== READS && !MAKES.includes(name)) return true;
      const path = join(SRC, by);
      // Some names are grouped.
      const part = (attribute ?? name)
        .replace(/(?<=^PeriodicHold|^OnExitHold)(Reason|SubCode)$/, '')
        .replace(/(?<=^TransformBody_).*/, '');
      return !existsSync(path) || !new RegExp(`\\b${part}(\\b|\\$)`, 'i').test(codeOf(readFileSync(path, 'utf8')));
    });
    expect(wrong.map(({ name, by }) => `${name}: ${by}`)).toEqual([]);
    const limited = CATALOGUE.filter(({ at, says }) => at !== undefined && says === undefined);
    expect(limited.map(({ name }) => name)).toEqual([]);
  });
});

describe('a command that has no effect', () => {
  it.each(named(of('warned')))('%s is warned of', (name, command) => {
    const [text, ...more] = warnings(lineFor(command)).filter((message) => message.startsWith(`${name} `));
    expect(text).toContain(command.says);
    expect(more).toEqual([]);
    if (command.attribute === undefined || command.attribute.startsWith('Transform')) return;
    // By its attribute, too, but not if it requests nothing.
    const value = BY_KIND[command.kind ?? ''] ?? (command.attribute === 'CUDAVersion' ? '"12.1"' : '"x"');
    const odd = command.idle.test('true') ? 'false' : value;
    expect(warnings(`+${command.attribute} = ${odd}`).join()).toContain(command.says);
    for (const idle of ['true', 'false', '0', '-1', 'undefined'])
      if (command.idle.test(idle))
        expect(warnings(`MY.${command.attribute} = ${idle}`).join()).not.toContain(command.says);
  });

  it('is said once, however many jobs there are', () => {
    const cluster = submit(
      'executable = job.sh\nkeep_claim_idle = $(Process) + 5\nnext_job_start_delay = $(Process)\nqueue 50',
    );
    expect([...cluster.procs()]).toHaveLength(50);
    expect(cluster.warnings.map(({ line, message }) => `${line} ${message.split('.')[0]}`)).toEqual([
      '2 keep_claim_idle has no effect',
      '3 next_job_start_delay has no effect',
    ]);
  });

  it('request_ of what no machine has is one of them', () => {
    expect(warnings('request_foo = 1')).toEqual([]);
    expect(warnings('request_foo = 0')).toEqual([]);
    const grid = submit('executable = job.sh\nrequest_foo = 1\nuniverse = grid\ngrid_resource = batch slurm\nqueue');
    expect(grid.warnings.map(({ message }) => message).join()).toContain('request_foo has no effect');
  });

  it('is said on standard error of the command line, with file and line', async () => {
    const home = mkdtempSync(join(tmpdir(), 'gcat-'));
    try {
      const universes = /^(container_service_names|mount_under|docker_)/;
      // Those that exclude one another.
      const all = of('warned').filter(
        ({ name }) =>
          !/^(concurrency_limits_expr|transfer_(input|output|error)|java_vm_arg\w*)$/.test(name) &&
          !universes.test(name),
      );
      const lines = all.map((command) => lineFor(command).split('\n')[0] ?? '');
      const beside = ['request_gpus = 1', 'request_disk = 1G', 'input = job.sh', 'output = o', 'error = e'];
      writeFileSync(join(home, 'job.sh'), '#!/bin/sh\n', { mode: 0o755 });
      writeFileSync(join(home, 'a b.sub'), ['executable = job.sh', ...lines, ...beside, 'queue 3', ''].join('\n'));
      const { stdout, stderr, exit } = await gryphus(['submit', '--dry-run', '--json', 'a b.sub'], { home });
      expect({ exit, ads: (JSON.parse(stdout) as unknown[]).length }).toEqual({ exit: 0, ads: 3 });
      const said = stderr.split('\n');
      const missing = all.filter(
        ({ name, says }, at) => !said.includes(`WARNING: a b.sub, line ${at + 2}: ${name} has no effect. ${says}`),
      );
      expect(missing.map(({ name }) => name)).toEqual([]);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});

describe('a command that would do something else', () => {
  // Two have their own wording.
  const own = /^(MyProxyPassword|deferral_|cron_(window|prep_time)|tool_daemon_(?!cmd)|suspend_job)/;
  it.each(named(of('refused').filter(({ name }) => !own.test(name))))(
    '%s is refused, and warned of in a dry run',
    (name, command) => {
      const line = lineFor(command);
      const error = refusal(`${line}\nqueue`);
      expect(error.message).toBe(`on Line 2 of job.sub: ${name} is not supported.`);
      expect(error.suggestions).toEqual([command.says]);
      const dry = submit(`executable = job.sh\n${line}\nqueue`, { policy: { dryRun: true } });
      expect(dry.warnings.map(({ message }) => message).join()).toContain(`${name} is not supported. ${command.says}`);
      if (command.attribute !== undefined && command.idle.test('false'))
        expect(jobs(`MY.${command.attribute} = false\nqueue`)).toHaveLength(1);
    },
  );

  it.each([
    ['deferral_time = 5', 'deferral_time'],
    ['universe = local\ndeferral_time = 5\ndeferral_window = 6', 'deferral_time'],
    ['cron_hour = 5\ncron_window = 60', 'cron_hour'],
    ['MY.DeferralTime = time() + 5', 'deferral_time'],
    ['MyProxyPassword = x', 'MyProxyPassword'],
    ['tool_daemon_cmd = job.sh\ntool_daemon_args = x', 'tool_daemon_cmd'],
  ])('%j is refused', (lines, name) => expect(refusal(`${lines}\nqueue`).message).toContain(name));
});

describe('a universe that is not run here', () => {
  it.each([['vm', 'vm_type = kvm\nvm_memory = 100\nvm_disk = a:b:w']])(
    '%s is refused when the job is to be put into the queue',
    (universe, lines) => {
      const [ad = {}] = [...fullAds(submit(`universe = ${universe}\nexecutable = job.sh\n${lines}\nqueue`))];
      expect(() => new SiteChooser(new Map(), 'pool').siteFor(ad, undefined)).toThrow(/cannot be run here/);
    },
  );

  it('has commands that mean nothing in another, which is said', () => {
    const commands = of('not-run');
    expect(commands.length).toBeGreaterThan(40);
    const silent = commands.filter(({ name }) => !/has no effect for such a job/.test(warnings(`${name} = 1`).join()));
    expect(silent.map(({ name }) => name)).toEqual([]);
  });
});

describe('a command that is done in some places', () => {
  const gram = { kind: 'gram' } as never;
  const SITES: Readonly<Record<JobPlace, readonly [lines: string, site: Destination]>> = {
    pool: ['', POOL_SITE],
    batch: ['universe = grid\ngrid_resource = batch slurm c', { name: 'c', credential: undefined }],
    gram: ['universe = grid\ngrid_resource = gt2 h/j', { name: 'h', credential: undefined, target: gram }],
    local: ['universe = local', SCHEDULER_SITE],
  };
  const policy = { gridTypes: ['gt2'], checkProxy: () => ({ ok: true as const, value: { expiresAt: 4e9 } }) };
  const here = { world: world({ proxy: 'x' }, { X509_USER_PROXY: '/d/proxy' }), policy };

  function said(lines: string, place: JobPlace): readonly string[] {
    const [universe, site] = SITES[place];
    const cluster = submit(`executable = job.sh\n${lines}\n${universe}\nqueue`, here);
    const look = new OutOfPlace(cluster);
    for (const ad of fullAds(cluster)) look.look(site, ad, {});
    return look.warnings.map(({ line, message }) => `${line}: ${message}`);
  }

  const limited = CATALOGUE.filter(({ at }) => at !== undefined);
  it.each(named(limited))('%s is warned of in the others', (name, command) => {
    const { at = [], says = '' } = command;
    for (const place of ['pool', 'batch', 'gram', 'local'] as const) {
      // A command that is only for grid jobs is never looked up in others: it is unused there.
      const grid = at.includes('gram') && !at.includes('pool');
      if (grid && (place === 'pool' || place === 'local')) continue;
      if (/^(container|docker|transfer_container)/.test(name) && place !== 'pool') continue;
      const about = said(lineFor(command), place).filter((one) => one.startsWith(`2: ${name} `));
      expect([place, about.length]).toEqual([place, at.includes(place) ? 0 : 1]);
      if (!at.includes(place)) expect(about[0]).toContain(says);
    }
  });

  it('is not reported where it is not written, and not twice', () => {
    expect(said('priority = 1', 'batch')).toEqual([]);
    expect(said('priority = 1', 'local')).toEqual([]);
    const [, site] = SITES.batch;
    const cluster = submit(
      'executable = job.sh\nkill_sig = SIGINT\nuniverse = grid\ngrid_resource = batch slurm c\nqueue 9',
    );
    const look = new OutOfPlace(cluster);
    for (const ad of fullAds(cluster)) look.look(site, ad, {});
    expect(look.warnings).toEqual([
      {
        line: 2,
        message: 'kill_sig has no effect for a job of a batch system. The site chooses the signals that end jobs.',
      },
    ]);
  });

  it('is done by the broker, where a job is matched with sites', () => {
    const cluster = submit('executable = job.sh\nrequirements = Cpus > 4\nuniverse = grid\nqueue', {
      policy: { broker: true },
    });
    const look = new OutOfPlace(cluster);
    for (const ad of fullAds(cluster)) look.look({ name: '', credential: undefined }, ad, {});
    expect(look.warnings).toEqual([]);
  });
});
