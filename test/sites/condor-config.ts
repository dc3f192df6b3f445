/** A pool on one machine that does everything at once: no benchmarks, short intervals, authentication by the file system. */
export function condorConfig(at: CondorPlace): string {
  return `RELEASE_DIR = ${at.dir}/usr
LOCAL_DIR = ${at.dir}
BIN = $(RELEASE_DIR)/bin
SBIN = $(RELEASE_DIR)/sbin
LIB = $(RELEASE_DIR)/lib
LIBEXEC = $(RELEASE_DIR)/libexec/condor
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
RUN = $(LOCAL_DIR)/lock
SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/none
SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/none
SEC_TOKEN_SYSTEM_DIRECTORY = $(LOCAL_DIR)/none
${at.ids === undefined ? '' : `CONDOR_IDS = ${at.ids}\n`}CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:${at.port}
USE_SHARED_PORT = True
SHARED_PORT_PORT = ${at.port}
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
NETWORK_HOSTNAME = localhost
NO_DNS = True
DEFAULT_DOMAIN_NAME = localdomain
UID_DOMAIN = localdomain
FILESYSTEM_DOMAIN = localdomain
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD
MAIL = /bin/true
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
${['ADMINISTRATOR', 'WRITE', 'READ', 'DAEMON', 'NEGOTIATOR', 'OWNER'].map((level) => `ALLOW_${level} = *`).join('\n')}
NUM_CPUS = ${at.slots}
MEMORY = 8192
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
START = True
SUSPEND = False
PREEMPT = False
KILL = False
CONTINUE = True
RunBenchmarks = False
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 5
MASTER_UPDATE_INTERVAL = 5
POLLING_INTERVAL = 2
PERIODIC_EXPR_INTERVAL = 1
${(at.config ?? []).join('\n')}
`;
}

export interface CondorPlace {
  readonly dir: string;
  readonly port: number;
  readonly slots: number;
  /** `UID.GID` of the daemons if root starts them. */
  readonly ids?: string;
  /** Lines added at the end. */
  readonly config?: readonly string[];
}
