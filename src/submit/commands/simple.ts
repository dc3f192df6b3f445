import { booleanOf, integerOf } from '../calculate.ts';
import type { JobMaker, Step } from '../maker.ts';
import { stripQuotes, tokens } from '../text.ts';

/**
 * `unquoted`: a string without the quotes around it. `path`: made absolute. `list`: parts joined by commas. `natural`: an
 * integer that is not negative.
 */
type Kind = 'string' | 'unquoted' | 'list' | 'path' | 'unquoted-path' | 'bool' | 'int' | 'natural' | 'expr';

interface Command {
  readonly name: string;
  readonly attribute: string;
  readonly kind: Kind;
  /** Looked at only when `name` has no value. */
  readonly alias?: string;
}

function commands(kind: Kind, pairs: string): Command[] {
  return pairs
    .trim()
    .split(/\s+/)
    .map((pair) => {
      const [name = '', attribute = '', alias] = pair.split(':');
      return { name, attribute, kind, ...(alias === undefined ? {} : { alias }) };
    });
}

/** Commands that are put into the ad as they stand: `name:Attribute[:other name]`. */
export const SIMPLE_COMMANDS: readonly Command[] = [
  ...commands(
    'expr',
    `next_job_start_delay:NextJobStartDelay keep_claim_idle:KeepClaimIdle
     max_idle:JobMaterializeMaxIdle:materialize_max_idle want_graceful_removal:WantGracefulRemoval
     job_max_vacate_time:JobMaxVacateTime file_remaps:FileRemaps buffer_files:BufferFiles buffer_size:BufferSize
     buffer_block_size:BufferBlockSize noop_job:IsNoopJob noop_job_exit_signal:NoopJobExitSignal
     noop_job_exit_code:NoopJobExitCode stack_size:StackSize max_job_retirement_time:MaxJobRetirementTime
     job_lease_duration:JobLeaseDuration max_transfer_input_mb:MaxTransferInputMB
     max_transfer_output_mb:MaxTransferOutputMB allowed_job_duration:AllowedJobDuration
     allowed_execute_duration:AllowedExecuteDuration`,
  ),
  ...commands(
    'string',
    `job_ad_information_attrs:JobAdInformationAttrs ulog_execute_attrs:UserLogExecuteEventAttrs
     docker_network_type:DockerNetworkType docker_pull_policy:DockerPullPolicy transfer_plugins:TransferPlugins
     job_machine_attrs:JobMachineAttrs notify_user:NotifyUser remote_initialdir:RemoteIwd
     Remote_grid_resource:Remote_GridResource Remote_Remote_grid_resource:Remote_Remote_GridResource
     output_destination:OutputDestination encrypt_input_files:EncryptInputFiles
     encrypt_output_files:EncryptOutputFiles dont_encrypt_input_files:DontEncryptInputFiles
     dont_encrypt_output_files:DontEncryptOutputFiles primary_unix_group:PrimaryUnixGroup fetch_files:FetchFiles
     compress_files:CompressFiles append_files:AppendFiles local_files:LocalFiles dag_node_name:DAGNodeName
     submit_event_notes:SubmitEventNotes submit_event_user_notes:SubmitEventUserNotes
     submit_event_notes_attrs:SubmitEventNotesAttrs jar_files:JarFiles parallel_script_shadow:ParallelScriptShadow
     parallel_script_starter:ParallelScriptStarter cron_minute:CronMinute cron_hour:CronHour
     cron_day_of_month:CronDayOfMonth cron_month:CronMonth cron_day_of_week:CronDayOfWeek description:JobDescription
     manifest_dir:ManifestDir checkpoint_destination:CheckpointDestination aws_region:AWSRegion
     aws_access_key_id_file:EC2AccessKeyId aws_secret_access_key_file:EC2SecretAccessKey
     s3_access_key_id_file:EC2AccessKeyId s3_secret_access_key_file:EC2SecretAccessKey
     gs_access_key_id_file:EC2AccessKeyId gs_secret_access_key_file:EC2SecretAccessKey
     transfer_checkpoint_files:TransferCheckpoint cuda_version:CUDAVersion`,
  ),
  ...commands(
    'unquoted',
    `container_target_dir:ContainerTargetDir mount_under_scratch:MountUnderScratch starter_debug:JobStarterDebug
     batch_name:JobBatchName batch_id:JobBatchId jobset:JobSetName`,
  ),
  ...commands('unquoted-path', 'starter_log:JobStarterLog'),
  ...commands('path', 'output_directory:OutputDirectory log:UserLog dagman_log:DAGManNodesLog'),
  ...commands('list', 'email_attributes:EmailAttributes'),
  ...commands(
    'bool',
    `docker_override_entrypoint:DockerOverrideEntrypoint docker_send_credentials:DockerSendCredentials
     transfer_container:TransferContainer want_io_proxy:WantIOProxy want_job_networking:WantJobNetworking
     container_is_common:ContainerIsCommon encrypt_execute_directory:EncryptExecuteDirectory load_profile:LoadProfile
     log_xml:UserLogUseXML run_as_owner:RunAsOwner manifest:ManifestDesired
     erase_output_and_error_on_restart:EraseOutputAndErrorOnRestart preserve_relative_paths:PreserveRelativePaths
     skip_if_dataflow:SkipIfDataflow want_flood:WantFlood`,
  ),
  ...commands(
    'int',
    `job_machine_attrs_history_length:JobMachineAttrsHistoryLength match_list_length:LastMatchListLength
     core_size:CoreSize priority:JobPrio:prio checkpoint_exit_code:SuccessCheckpointExitCode`,
  ),
  ...commands('natural', 'dagman_job_id:DAGManJobId'),
];

function set(job: JobMaker, { name, attribute, kind }: Command, text: string): void {
  switch (kind) {
    case 'expr':
      return job.setExpr(attribute, text, name);
    case 'string':
      return job.setString(attribute, text);
    case 'unquoted':
      return job.setString(attribute, stripQuotes(text));
    case 'list':
      return job.setString(attribute, tokens(text).join(','));
    case 'path':
    case 'unquoted-path': {
      const path = kind === 'path' ? text : stripQuotes(text);
      return job.setString(attribute, path === '' ? '' : job.fullPath(path));
    }
    case 'bool': {
      const value = booleanOf(text);
      if (value !== undefined) return job.setBool(attribute, value);
      throw job.fault(name, `${name}=${text} is invalid, must eval to a boolean.`, ['Write true or false.'], attribute);
    }
    case 'int':
    case 'natural': {
      const value = integerOf(text);
      if (value !== undefined && (kind === 'int' || value >= 0n)) return job.setInt(attribute, value);
      const what = value === undefined ? 'an integer' : 'a non-negative integer';
      throw job.fault(name, `${name}=${text} is invalid, must eval to ${what}.`, [], attribute);
    }
  }
}

export const simple: readonly Step[] = SIMPLE_COMMANDS.map((command) => ({
  name: command.name,
  run(job) {
    const text = job.param(command.name, command.attribute) ?? (command.alias ? job.param(command.alias) : undefined);
    if (text !== undefined) set(job, command, text);
  },
}));
