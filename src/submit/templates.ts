/** HTCondor's configuration templates by category (manual, "Configuration Templates"), for `if defined use`. */
export const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  feature: words(`
    adstash assignaccountinggroup assignprojectname childcollector commoncloudattributesaws
    commoncloudattributesgoogle continuouscronhook defaultcheckpointdestination ganglia gpus gpusmonitor
    hpc_annex jobshaveinstanceids krb librarian monitor oauth oneshotcronhook policy_expr_fragments
    policy_hours_to_start partitionableslot pelicancache pelicanretrypolicy periodiccronhook remote_config
    remote_runtime_config scheddcroncontinuous scheddcrononeshot scheddcronperiodic scheddusermapfile
    setjobattrfromusermap startdcroncontinuous startdcrononeshot startdcronperiodic staticslots
    testingmode_policy_values uwcs_desktop_policy_values
  `),
  policy: words(`
    always_run_jobs desktop desktop_hours desktop_idle hold_if_cpus_exceeded hold_if_disk_exceeded
    hold_if_memory_exceeded hold_if_runtime_exceeds limit_job_runtimes onlyregisteredcheckpointdestinations
    preempt_if preempt_if_cpus_exceeded preempt_if_disk_exceeded preempt_if_memory_exceeded
    preempt_if_runtime_exceeds startd_publish_cpususage uwcs_desktop want_hold_if
  `),
  role: words(`
    centralmanager execute personal submit get_htcondor_central_manager get_htcondor_execute get_htcondor_submit
  `),
  security: words(`
    fips host_based strong user_based with_authentication get_htcondor_idtokens recommended recommended_v24_0
    recommended_v9_0
  `),
};

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
