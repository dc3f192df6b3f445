-- ARGV: cluster, token, now (ms), ad as JSON, owner, batch, next proc, total, digest ('' if there is none), procs as
-- JSON ranges, DAG ('' if it belongs to none), name in it, default manager and site of the procs, JobUniverse,
-- DAGManJobId. Makes all of a staged cluster visible at once. Returns 1, or 0 if the staging was deleted, or 2 if the
-- DAG already has a submit of this name. Idempotent.
local cluster, token, now = ARGV[1], ARGV[2], ARGV[3]
local summary = K .. 'c:' .. cluster
if call('HGET', summary, 'token') == token then return 1 end
local held = call('HGET', K .. 'staging', cluster)
if not held or string.sub(held, 1, #token + 1) ~= token .. '|' then return 0 end
if ARGV[11] ~= '' then
  if call('HSETNX', K .. 'dn:' .. ARGV[11], ARGV[12], cluster .. '|' .. ARGV[8]) == 0 then return 2 end
  call('HSET', summary, 'dag', ARGV[11])
end
for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do
  local manager, site, prio, state = string.match(name, '^(%d+):(%d+):(-?%d+):(.*)$')
  admit(cluster, manager, site, prio, state, countIn(K .. 'g:' .. cluster .. ':' .. name))
end
call('HSET', summary, 'owner', ARGV[5], 'batch', ARGV[6], 'at', string.sub(now, 1, -4), 'next', ARGV[7],
  'total', ARGV[8], 'token', token, 'manager', ARGV[13], 'site', ARGV[14],
  'universe', ARGV[15], 'dagman', ARGV[16])
if ARGV[9] ~= '' then
  call('HSET', summary, 'digest', ARGV[9])
  call('ZADD', K .. 'late', cluster, cluster)
end
call('SET', K .. 'ad:' .. cluster, ARGV[4])
call('ZADD', K .. 'clusters', cluster, cluster)
call('DEL', K .. 'sg:' .. cluster)
call('HDEL', K .. 'staging', cluster)
event(now, 'submitted', '"cluster":' .. cluster .. ',"procs":' .. ARGV[10] .. ',"owner":' .. cjson.encode(ARGV[5]))
return 1
