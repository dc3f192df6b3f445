import type { JobPlace, CommandKind } from './catalogue.ts';

/**
 * Commands with the same fate. `names`: `name[:Attribute[:other name]]`, separated by blanks. The rest as in
 * `SubmitCommand`.
 */
export interface Group {
  readonly names: string;
  readonly kind?: CommandKind;
  readonly by?: string;
  readonly at?: readonly JobPlace[];
  readonly says?: string;
  readonly idle?: RegExp;
}

const POOL: readonly JobPlace[] = ['pool'];
const GRID: readonly JobPlace[] = ['batch', 'gram'];
const CARRIED: readonly JobPlace[] = ['pool', 'batch', 'gram'];

const IN_PLACE = 'A job of the local or scheduler universe runs in its initialdir; no files are transferred.';
const SITES_OWN = 'The site decides this.';
const CONTAINER = 'Containers run in the pool.';

export const DONE_TABLE: readonly Group[] = [
  // What runs, and where.
  { names: 'universe:JobUniverse', by: 'enqueue/site-choice.ts' },
  { names: 'executable:Cmd shell:Cmd', by: 'gridmanager/spec.ts' },
  { names: 'arguments:Arguments arguments2:Arguments', by: 'submit/job-words.ts' },
  { names: 'jar_files:JarFiles', kind: 'string', by: 'gridmanager/java.ts', says: 'For the java universe.' },
  { names: 'java_vm_args:JavaVMArgs java_vm_arguments:JavaVMArgs java_vm_arguments2:JavaVMArguments', by: 'submit/job-words.ts', says: 'For the java universe.' },
  { names: 'environment:Environment:env environment2:Environment getenv:Environment:get_env', by: 'submit/job-words.ts' },
  { names: 'initialdir:Iwd:initial_dir job_iwd:Iwd', by: 'gridmanager/files.ts' },
  { names: 'input:In:stdin output:Out:stdout error:Err:stderr', by: 'gridmanager/files.ts' },
  { names: 'stream_output:StreamOut stream_error:StreamErr', kind: 'bool', by: 'gridmanager/streaming/streamed.ts', says: 'Not of a parallel job.' },
  { names: 'grid_resource:GridResource', by: 'enqueue/site-choice.ts' },
  { names: 'batch_queue:BatchQueue batch_project:BatchProject', by: 'gridmanager/spec.ts', at: GRID, says: 'It is for jobs of the grid universe.' },
  { names: 'batch_runtime:BatchRuntime', by: 'gridmanager/spec.ts', at: CARRIED, says: 'allowed_execute_duration is for all jobs.' },
  { names: 'batch_extra_submit_args:BatchExtraSubmitArgs', by: 'gridmanager/spec.ts', at: GRID, says: 'It is for jobs of the grid universe.' },
  { names: 'machine_count:HostNumber node_count:HostNumber:NodeCount ranks_per_node:RanksPerNode', by: 'job/nodes.ts', at: GRID, says: 'It is for jobs of the parallel universe, and of the grid universe at a site: see [parallel.md](parallel.md).' },
  { names: 'whole_nodes:WholeNodes', by: 'gridmanager/spec.ts', at: GRID, says: 'It is for jobs of the grid or parallel universe at a site: see [parallel.md](parallel.md).' },
  { names: 'globus_rsl:GlobusRSL', by: 'gridmanager/spec.ts', at: ['gram'], says: 'It is for GRAM services.' },
  { names: 'want_flood:WantFlood', kind: 'bool', by: 'scheduler/flooding.ts' },
  { names: 'requirements:Requirements', by: 'classad/matchmaker.ts', at: POOL, says: `Sites are not matched by machine. ${SITES_OWN} Use what it understands: request_…, batch_queue, batch_extra_submit_args.`, idle: /^true$/i },
  { names: 'rank:Rank:preferences', by: 'classad/matchmaker.ts', at: POOL, says: `Sites are not matched by machine. ${SITES_OWN}`, idle: /^(0(\.0)?|undefined)$/i },
  // Resource requests.
  { names: 'request_cpus:RequestCpus request_memory:RequestMemory request_disk:RequestDisk', by: 'gridmanager/spec.ts' },
  { names: 'request_gpus:RequestGPUs', by: 'gridmanager/spec.ts' },
  { names: 'retry_request_memory:TransformBody_RequestMemory retry_request_memory_increase:TransformBody_RequestMemory retry_request_memory_max:TransformBody_RequestMemory on_evict_checks:TransformOnEvict', by: 'gridmanager/on-evict.ts', at: CARRIED, says: 'The memory of such a job is not limited.' },
  { names: 'core_size:CoreSize', kind: 'int', by: 'gridmanager/spec.ts', idle: /^$/ },
  { names: 'image_size:ImageSize', by: 'job/log-events.ts' },
  { names: 'disk_usage:DiskUsage', by: 'job/log-usage.ts' },
  // Files.
  { names: 'should_transfer_files:ShouldTransferFiles', by: 'gridmanager/files.ts', at: CARRIED, says: IN_PLACE, idle: /^"(NO|IF_NEEDED)"$/i },
  { names: 'when_to_transfer_output:WhenToTransferOutput', by: 'gridmanager/results-loop.ts', at: CARRIED, says: IN_PLACE, idle: /^"(ON_EXIT|NEVER)"$/i },
  { names: 'transfer_executable:TransferExecutable', by: 'gridmanager/files.ts' },
  { names: 'transfer_input_files:TransferInput:TransferInputFiles transfer_common_input:CommonInputFiles:common_input_files public_input_files:PublicInputFiles', by: 'gridmanager/files.ts', at: CARRIED, says: IN_PLACE },
  { names: 'container_is_common:ContainerIsCommon', kind: 'bool', says: 'Always the case: shared inputs are sent to a site once.' },
  { names: 'transfer_output_files:TransferOutput:TransferOutputFiles transfer_output_remaps:TransferOutputRemaps', by: 'gridmanager/files.ts', at: CARRIED, says: IN_PLACE },
  { names: 'stream_results:StreamResults', by: 'gridmanager/files.ts', at: ['pool', 'batch'], says: 'Files of a job at a GRAM service, and of one in its initialdir, cannot be followed while it runs: see [urls.md](urls.md#output-that-grows).' },
  { names: 'output_destination:OutputDestination', kind: 'string', by: 'gridmanager/files.ts', at: CARRIED, says: IN_PLACE },
  { names: 'output_directory:OutputDirectory', kind: 'path', by: 'gridmanager/files.ts', at: CARRIED, says: IN_PLACE },
  { names: 'max_transfer_input_mb:MaxTransferInputMB max_transfer_output_mb:MaxTransferOutputMB', kind: 'expr', by: 'gridmanager/transfer-limits.ts', at: CARRIED, says: IN_PLACE, idle: /^(-\d+|undefined)$/ },
  { names: 'skip_filechecks', by: 'submit/commands/streams.ts' },
  { names: 'encrypt_input_files:EncryptInputFiles encrypt_output_files:EncryptOutputFiles', kind: 'string', says: 'Always the case: all files are encrypted in transit.' },
  { names: 'checkpoint_exit_code:SuccessCheckpointExitCode', kind: 'int', by: 'gridmanager/files.ts', at: POOL, says: 'Only jobs in the pool continue from a checkpoint.', idle: /^$/ },
  { names: 'want_io_proxy:WantIOProxy', kind: 'bool', by: 'gridmanager/chirp/answer-job.ts', at: ['pool', 'batch', 'local'], says: 'Jobs of GRAM services cannot send requests to their home: see [chirp.md](chirp.md).', idle: /^false$/i },
  { names: 'want_remote_io:WantRemoteIO', kind: 'bool', by: 'pool/pool-site.ts', at: POOL, says: 'Only a job in the pool reaches files at home while it runs: see [remote-io.md](remote-io.md).', idle: /^false$/i },
  { names: 'want_flock:WantFlock', kind: 'bool', by: 'flock/clauses.ts', at: POOL, says: 'Only jobs of the pool go to the pools of partners: see [flock.md](flock.md).' },
  { names: 'want_checkpoint:WantCheckpoint', kind: 'bool', by: 'gridmanager/files.ts', at: POOL, says: 'Only the pool checkpoints programs that do not do so themselves: see [checkpoints.md](checkpoints.md).', idle: /^false$/i },
  { names: 'checkpoint_engine:CheckpointEngine', kind: 'string', by: 'pool/worker/checkpoint.ts', at: POOL, says: 'Only the pool checkpoints programs that do not do so themselves: see [checkpoints.md](checkpoints.md).' },
  { names: 'checkpoint_destination:CheckpointDestination', kind: 'string', by: 'gridmanager/checkpoint-destination.ts', at: POOL, says: 'Only jobs in the pool continue from a checkpoint.' },
  { names: 'transfer_checkpoint_files:TransferCheckpoint', kind: 'string', by: 'gridmanager/files.ts', at: POOL, says: 'Only jobs in the pool continue from a checkpoint.' },
  // Policy.
  { names: 'hold:JobStatus', by: 'queue/record.ts' },
  { names: 'priority:JobPrio:prio', kind: 'int', by: 'queue/proc-batch.ts' },
  { names: 'periodic_hold:PeriodicHold periodic_release:PeriodicRelease periodic_remove:PeriodicRemove', by: 'scheduler/periodic.ts' },
  { names: 'periodic_hold_reason:PeriodicHoldReason periodic_hold_subcode:PeriodicHoldSubCode', by: 'job/hold.ts' },
  { names: 'periodic_vacate:PeriodicVacate', by: 'scheduler/periodic.ts', at: POOL, says: 'Only the pool restarts a job that was vacated.' },
  { names: 'on_exit_hold:OnExitHold on_exit_hold_reason:OnExitHoldReason on_exit_hold_subcode:OnExitHoldSubCode on_exit_remove:OnExitRemove', by: 'gridmanager/decide.ts' },
  { names: 'max_retries:JobMaxRetries', by: 'gridmanager/decide.ts' },
  { names: 'retry_until:OnExitRemove', by: 'gridmanager/decide.ts' },
  { names: 'success_exit_code:JobSuccessExitCode', by: 'gridmanager/results-loop.ts' },
  { names: 'allowed_job_duration:AllowedJobDuration allowed_execute_duration:AllowedExecuteDuration', kind: 'expr', by: 'scheduler/periodic.ts', idle: /^undefined$/i },
  { names: 'leave_in_queue:LeaveJobInQueue', by: 'job/stays.ts' },
  { names: 'kill_sig:KillSig', by: 'pool/pool-site.ts', at: POOL, says: 'The site chooses the signals that end jobs.' },
  { names: 'job_max_vacate_time:JobMaxVacateTime', kind: 'expr', by: 'pool/pool-site.ts', at: POOL, says: 'The site decides how much time a job has to end.' },
  { names: 'job_lease_duration:JobLeaseDuration', kind: 'expr', by: 'pool/pool-site.ts', at: POOL, says: 'A site keeps running a job even while it cannot reach the agent.' },
  { names: 'max_job_retirement_time:MaxJobRetirementTime', kind: 'expr', by: 'pool/central-manager/preempting.ts', at: POOL, says: SITES_OWN },
  { names: 'accounting_group:AcctGroup accounting_group_user:AcctGroupUser nice_user:AcctGroup', by: 'pool/central-manager/accounting.ts', at: POOL, says: `Shares are accounted only in the pool. ${SITES_OWN} batch_project names an account there.` },
  { names: 'concurrency_limits:ConcurrencyLimits concurrency_limits_expr:ConcurrencyLimits', by: 'pool/central-manager/concurrency-limits.ts', at: POOL, says: `Limits count only in the pool. ${SITES_OWN}` },
  { names: 'max_materialize:JobMaterializeLimit', by: 'scheduler/materialize.ts' },
  { names: 'max_idle:JobMaterializeMaxIdle:materialize_max_idle', kind: 'expr', by: 'scheduler/materialize.ts' },
  // Logs, mail and other reports.
  { names: 'log:UserLog', kind: 'path', by: 'job/user-log-path.ts' },
  { names: 'notification:JobNotification', by: 'scheduler/mail-listener.ts' },
  { names: 'notify_user:NotifyUser', kind: 'string', by: 'scheduler/mail-listener.ts' },
  { names: 'email_attributes:EmailAttributes', kind: 'list', by: 'scheduler/mail-listener.ts' },
  { names: 'batch_name:JobBatchName', kind: 'unquoted', by: 'queue/submit.ts' },
  { names: 'batch_id:JobBatchId', kind: 'unquoted', by: 'dag/dag-manager.ts' },
  { names: 'description:JobDescription', kind: 'string', by: 'commands/print-format/print-as.ts' },
  { names: 'submit_event_notes:SubmitEventNotes submit_event_user_notes:SubmitEventUserNotes', kind: 'string', by: 'job/log-events.ts' },
  { names: 'dag_node_name:DAGNodeName', kind: 'string', by: 'dag/nodes-log.ts' },
  { names: 'dagman_job_id:DAGManJobId', kind: 'natural', by: 'queue/submit.ts' },
  // Credentials.
  { names: 'x509userproxy:x509userproxy use_x509userproxy:x509userproxy', by: 'config/credential-needs.ts' },
  { names: 'MyProxyHost:MyProxyHost MyProxyServerDN:MyProxyServerDN MyProxyCredentialName:MyProxyCredentialName MyProxyNewProxyLifetime:MyProxyNewProxyLifetime', by: 'config/credential-needs.ts' },
  // Containers.
  { names: 'container_image:ContainerImage docker_image:DockerImage', by: 'gridmanager/container-spec.ts', at: POOL, says: CONTAINER },
  { names: 'container_target_dir:ContainerTargetDir', kind: 'unquoted', by: 'gridmanager/container-spec.ts', at: POOL, says: CONTAINER },
  { names: 'docker_network_type:DockerNetworkType docker_pull_policy:DockerPullPolicy', kind: 'string', by: 'gridmanager/container-spec.ts', at: POOL, says: CONTAINER },
  { names: 'docker_override_entrypoint:DockerOverrideEntrypoint', kind: 'bool', by: 'gridmanager/container-spec.ts', at: POOL, says: CONTAINER },
  { names: 'transfer_container:TransferContainer', kind: 'bool', by: 'submit/commands/transfer.ts', at: POOL, says: CONTAINER, idle: /^true$/i },
  // The description itself.
  { names: 'allow_arguments_v1', by: 'submit/commands/arguments.ts' },
  { names: 'allow_environment_v1', by: 'submit/commands/environment.ts' },
]; // biome-ignore format: a table

const STANDARD = 'It belongs to the standard universe, which HTCondor no longer has either.';
const SPOKEN = 'The contents of the log and the mails are fixed.';
const LIMIT_LATER = 'Jobs run as if it were not set.';

export const WARNED_TABLE: readonly Group[] = [
  { names: 'file_remaps:FileRemaps buffer_files:BufferFiles buffer_size:BufferSize buffer_block_size:BufferBlockSize stack_size:StackSize', kind: 'expr', says: STANDARD },
  { names: 'fetch_files:FetchFiles compress_files:CompressFiles append_files:AppendFiles local_files:LocalFiles', kind: 'string', says: STANDARD },
  { names: 'next_job_start_delay:NextJobStartDelay', kind: 'expr', says: `${LIMIT_LATER} max_idle and max_materialize limit how many start together.` },
  { names: 'keep_claim_idle:KeepClaimIdle', kind: 'expr', says: 'A slot that becomes free goes to the next job that fits.' },
  { names: 'require_gpus:RequireGPUs gpus_minimum_memory:GPUsMinMemory gpus_minimum_capability:GPUsMinCapability gpus_maximum_capability:GPUsMaxCapability gpus_minimum_runtime:GPUsMinRuntime', says: 'No machine of the pool advertises the type of its GPUs: a job there waits for one that does. At a site, use batch_queue or batch_extra_submit_args.' },
  { names: 'cuda_version:CUDAVersion', kind: 'string', says: 'No machine of the pool advertises its CUDA version: a job there waits for one that does. At a site, use batch_queue or batch_extra_submit_args.' },
  { names: 'retry_request_disk:TransformBody_RequestDisk', says: 'No job is ended because of its disk usage.' },
  { names: 'memory_usage', says: "A job's usage is measured." },
  { names: 'transfer_input:TransferIn', says: 'Standard input is always transferred, unless should_transfer_files = NO.', idle: /^true$/i },
  { names: 'transfer_output:TransferOut transfer_error:TransferErr', says: 'Output is always transferred.', idle: /^true$/i },
  { names: 'stream_input:StreamIn', says: 'Standard input is transferred completely before the job starts.' },
  { names: 'preserve_relative_paths:PreserveRelativePaths', kind: 'bool', says: "Inputs are placed in the job's directory by their base names. Name a directory to transfer it with everything below it." },
  { names: 'erase_output_and_error_on_restart:EraseOutputAndErrorOnRestart', kind: 'bool', says: 'Output is started over by each run, but continued after a checkpoint.', idle: /^true$/i },
  { names: 'skip_if_dataflow:SkipIfDataflow', kind: 'bool', says: 'The job runs even if its results are newer than its inputs.' },
  { names: 'manifest:ManifestDesired', kind: 'bool', says: 'No list of files is written.' },
  { names: 'manifest_dir:ManifestDir', kind: 'string', says: 'No list of files is written.' },
  { names: 'copy_to_spool', says: 'Files are read in place when the job starts: do not change them until then.' },
  { names: 'remote_initialdir:RemoteIwd', kind: 'string', says: 'Each job has its own directory at its site.' },
  { names: 'use_oauth_services:OAuthServicesNeeded:UseOAuthServices', says: 'Jobs get no OAuth tokens.' },
  { names: 'use_scitokens:ScitokensFile:use_scitoken scitokens_file:ScitokensFile', says: 'The token stays here: jobs run without it. To give a job a token, list it in transfer_input_files.' },
  { names: 'MyProxyRefreshThreshold:MyProxyRefreshThreshold', says: 'A proxy is renewed well before it expires.' },
  { names: 'send_credential', says: 'Jobs get no credentials but their X.509 proxy.' },
  { names: 'delegate_job_gsi_credentials_lifetime:DelegateJobGSICredentialsLifetime', says: 'A delegated proxy is valid as long as the one it is derived from.' },
  { names: 'remove_kill_sig:RemoveKillSig hold_kill_sig:HoldKillSig', says: 'A job that is removed or held gets its kill_sig.' },
  { names: 'dont_encrypt_input_files:DontEncryptInputFiles dont_encrypt_output_files:DontEncryptOutputFiles', kind: 'string', says: 'All files are encrypted in transit.' },
  { names: 'want_graceful_removal:WantGracefulRemoval', kind: 'expr', says: 'A job that is removed from the pool gets its kill_sig and job_max_vacate_time. Elsewhere the site decides how it is ended.', idle: /^(true|undefined)$/i },
  { names: 'jobset:JobSetName', kind: 'unquoted', says: "Jobs are not grouped by it. Use batch_name, or select them with -constraint 'JobSetName == …'." },
  { names: 'dagman_log:DAGManNodesLog', kind: 'path', says: "The DAG manager writes its nodes' log itself." },
  { names: 'kill_sig_timeout:KillSigTimeout', says: 'Use job_max_vacate_time.' },
  { names: '+WantRemoteIO:WantRemoteIO', says: 'A running job cannot access files at home.' },
  { names: 'want_job_networking:WantJobNetworking', kind: 'bool', says: "A job uses its machine's network.", idle: /^true$/i },
  { names: 'run_as_owner:RunAsOwner', kind: 'bool', says: 'Jobs run as their owner; at a worker of root, pool.run_as says.', idle: /^true$/i },
  { names: 'load_profile:LoadProfile', kind: 'bool', says: 'It is for Windows.' },
  { names: 'primary_unix_group:PrimaryUnixGroup', kind: 'string', says: "Jobs run with their owner's group at the site." },
  { names: 'container_service_names:ContainerServiceNames', says: "A container uses its machine's network, or none: see docker_network_type." },
  { names: 'docker_send_credentials:DockerSendCredentials', kind: 'bool', says: "Images are pulled with the worker's credentials." },
  { names: 'mount_under_scratch:MountUnderScratch', kind: 'unquoted', says: "Only the job's directory is mounted in a container." },
  { names: 'log_xml:UserLogUseXML', kind: 'bool', says: 'The log is text; `gryphus log --json` reads it.' },
  { names: 'ulog_execute_attrs:UserLogExecuteEventAttrs job_ad_information_attrs:JobAdInformationAttrs submit_event_notes_attrs:SubmitEventNotesAttrs', kind: 'string', says: SPOKEN },
  { names: 'job_machine_attrs:JobMachineAttrs', kind: 'string', says: 'Machine attributes are not recorded in the job.' },
  { names: 'job_machine_attrs_history_length:JobMachineAttrsHistoryLength match_list_length:LastMatchListLength', kind: 'int', says: 'Machine attributes are not recorded in the job.' },
  { names: 'starter_debug:JobStarterDebug', kind: 'unquoted', says: 'There is no starter log.' },
  { names: 'starter_log:JobStarterLog', kind: 'unquoted-path', says: 'There is no starter log.' },
  { names: 'want_ads', says: 'A job finds its ad and its machine’s where $_CONDOR_JOB_AD and $_CONDOR_MACHINE_AD say.' },
  { names: 'Remote_universe:Remote_JobUniverse Remote_Remote_universe:Remote_Remote_JobUniverse', says: 'A job that is submitted to HTCondor runs in its vanilla universe.' },
  { names: 'Remote_grid_resource:Remote_GridResource Remote_Remote_grid_resource:Remote_Remote_GridResource', kind: 'string', says: 'A job is passed on only once, to the site in grid_resource.' },
  { names: 'parallel_script_shadow:ParallelScriptShadow parallel_script_starter:ParallelScriptStarter', kind: 'string', says: 'HTCondor starts these scripts before a parallel job; here, start them from its executable.' },
  { names: 'aws_region:AWSRegion aws_access_key_id_file:EC2AccessKeyId aws_secret_access_key_file:EC2SecretAccessKey s3_access_key_id_file:EC2AccessKeyId s3_secret_access_key_file:EC2SecretAccessKey gs_access_key_id_file:EC2AccessKeyId gs_secret_access_key_file:EC2SecretAccessKey', kind: 'string', says: 'Files cannot be fetched from s3: or gs:. Use a signed https URL.' },
  { names: 'rendezvousdir', says: 'It belongs to a file system that no longer exists.' },
]; // biome-ignore format: a table

export const REFUSED_TABLE: readonly Group[] = [
  { names: 'encrypt_execute_directory:EncryptExecuteDirectory', kind: 'bool', says: 'The directory of the job would not be encrypted. Remove it only if the files may be readable at the site.' },
  { names: 'transfer_plugins:TransferPlugins', kind: 'string', says: 'No machine runs plug-ins of a job: it would wait for ever. http, https, ftp, ftps and gsiftp URLs need none.' },
  { names: 'tool_daemon_cmd:ToolDaemonCmd tool_daemon_args tool_daemon_arguments tool_daemon_arguments2 tool_daemon_input tool_daemon_output tool_daemon_error suspend_job_at_exec', says: 'No machine starts a second program alongside a job.' },
  { names: 'deferral_time:DeferralTime deferral_window:DeferralWindow deferral_prep_time:DeferralPrepTime cron_window:CronWindow cron_prep_time:CronPrepTime', says: 'Jobs start as soon as they can. To start one at a set time, submit it then, with at(1), cron(8) or a systemd timer.', idle: /^$/ },
  { names: 'cron_minute:CronMinute cron_hour:CronHour cron_day_of_month:CronDayOfMonth cron_month:CronMonth cron_day_of_week:CronDayOfWeek', kind: 'string', says: 'Jobs start as soon as they can. To start jobs regularly, submit them with cron(8) or a systemd timer.', idle: /^$/ },
  { names: 'noop_job:IsNoopJob', kind: 'expr', says: 'The job would run anyway. In a DAG, mark its node NOOP.' },
  { names: 'noop_job_exit_signal:NoopJobExitSignal noop_job_exit_code:NoopJobExitCode', kind: 'expr', says: 'The job would run anyway.', idle: /^$/ },
  { names: 'exit_requirements', says: 'HTCondor no longer has it: use on_exit_remove.' },
  { names: '+WantParallelScheduling:WantParallelScheduling', says: 'Every job of the cluster would run on its own.' },
  { names: 'MyProxyPassword', says: 'A submit file must not contain a password. Give it to gryphus cred once; the agent keeps it out of the queue.' },
]; // biome-ignore format: a table

export const NOT_RUN_TABLE: readonly Group[] = [
  { names: 'vm_type vm_memory vm_vcpus vm_disk vm_macaddr vm_vnc vm_checkpoint vm_networking vm_networking_type vm_no_output_vm xen_kernel xen_initrd xen_root xen_kernel_params', says: 'the vm universe' },
  { names: 'arc_rte:ArcRte arc_application:ArcApplication arc_resources:ArcResources arc_data_staging:ArcDataStaging', says: 'grid_resource = arc' },
  { names: 'ec2_ami_id:EC2AmiID ec2_user_data:EC2UserData ec2_security_groups:EC2SecurityGroups ec2_security_ids:EC2SecurityIDs ec2_instance_type:EC2InstanceType ec2_elastic_ip:EC2ElasticIp ec2_availability_zone:EC2AvailabilityZone ec2_vpc_subnet:EC2VpcSubnet ec2_vpc_ip:EC2VpcIp ec2_spot_price:EC2SpotPrice ec2_block_device_mapping:EC2BlockDeviceMapping ec2_iam_profile_arn:EC2IamProfileArn', kind: 'string', says: 'grid_resource = ec2' },
  { names: 'ec2_user_data_file:EC2UserDataFile', kind: 'path', says: 'grid_resource = ec2' },
  { names: 'ec2_access_key_id ec2_secret_access_key ec2_keypair::ec2_keyp_air ec2_keypair_file::ec2_key_pair_file ec2_ebs_volumes ec2_tag_names ec2_parameter_names ec2_iam_profile_name WantNameTag', says: 'grid_resource = ec2' },
  { names: 'gce_image:GceImage gce_account:GceAccount gce_machine_type:GceMachineType', kind: 'string', says: 'grid_resource = gce' },
  { names: 'gce_auth_file:GceAuthFile gce_metadata_file:GceMetadataFile gce_json_file:GceJsonFile', kind: 'path', says: 'grid_resource = gce' },
  { names: 'gce_metadata gce_preemptible cloud_label_names', says: 'grid_resource = gce' },
  { names: 'azure_location:AzureLocation azure_size:AzureSize azure_image:AzureImage azure_admin_username:AzureAdminUsername azure_admin_key:AzureAdminKey', kind: 'string', says: 'grid_resource = azure' },
  { names: 'azure_auth_file:AzureAuthFile', kind: 'path', says: 'grid_resource = azure' },
]; // biome-ignore format: a table
