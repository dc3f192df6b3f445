-- Shared by all scripts. The host defines before it: K (the key prefix), LIFE[state][event] = state, SHOWS[state] = the
-- name of the JobStatus, STATUS[state] = its number, ENDS[state] and ROUTABLE[state] = true, CANDIDATES[state][event] =
-- state of a candidate, or 'gone'.
--
-- meta                hash     version, agent, cluster (the last id assigned), kv, run (the server's run id), life
--                              (its number)
-- lives               hash     number of an earlier life = 'run|events|cluster' at its end
-- names, ids          hashes   names of managers and sites to small numbers, and back; '' is 0
-- clusters, late      zsets    cluster ids; those that still have procs to create
-- c:<cluster>         hash     owner, batch, at, next, total, digest, token, manager, site, hist ('file|offset|length'
--                              of its ad in the history), dag (its DAG manager's cluster), universe, dagman
--                              (JobUniverse and DAGManJobId, or ''), and
--                              '#<manager>:<site>:<priority>:<state>' = jobs in that group
-- ad:<cluster>        string   JSON: the attributes that the procs share
-- j:<cluster>         hash     proc = 'state|manager|site|priority|attempt|since' LF JSON of the job's own attributes
-- g:<cluster>:<manager>:<site>:<priority>:<state>   zset   procs (a group)
-- q:<manager>:<site>:<state>   zset   groups, by -priority and cluster
-- places              hash     '<manager>:<site>:<state>' = jobs
-- b:<cluster>         hash     proc = JSON of its candidates: last (the last attempt given to one), open (attempt = {
--                              s state, m manager, w site, t since (s), n the site's message}), refused (site =
--                              message)
-- o:<manager>:<site>:<state>   zset   '<cluster>.<proc>.<attempt>' of candidates, by time
-- candidates          hash     '<manager>:<site>:<state>' = candidates
-- staging             hash     cluster = 'token|touched': not visible yet; sg:<cluster> set: its groups
-- history             hash     file, size: the history file, and the size up to which its jobs have left the queue
-- events, cursors     stream, hash
-- dag:<id>, dn:<id>   stream, hash   of one DAG: its jobs' events and messages; the submit's name = 'cluster|procs'
-- kv:<namespace>      hash     key = 'version|value'
-- leases, epochs      hashes   name = 'from|until|holder'; name = the last epoch assigned

local call = redis.call

-- Groups of one priority are sorted as bytes, so the number is preceded by its length.
local function member(cluster, prio)
  return string.char(96 + #cluster) .. cluster .. ':' .. prio
end

local function less(key, field, n)
  if call('HINCRBY', key, field, -(n or 1)) == 0 then call('HDEL', key, field) end
end

-- Counts n procs that entered a group, which already contains them.
local function admit(cluster, manager, site, prio, state, n)
  call('ZADD', K .. 'q:' .. manager .. ':' .. site .. ':' .. state, -tonumber(prio), member(cluster, prio))
  call('HINCRBY', K .. 'places', manager .. ':' .. site .. ':' .. state, n)
  call('HINCRBY', K .. 'c:' .. cluster, '#' .. manager .. ':' .. site .. ':' .. prio .. ':' .. state, n)
end

local function enter(job)
  call('ZADD', K .. 'g:' .. job.cluster .. ':' .. job.manager .. ':' .. job.site .. ':' .. job.prio .. ':' .. job.state,
    job.proc, job.proc)
  admit(job.cluster, job.manager, job.site, job.prio, job.state, 1)
end

local function leave(job)
  local place = job.manager .. ':' .. job.site .. ':' .. job.state
  local name = job.manager .. ':' .. job.site .. ':' .. job.prio .. ':' .. job.state
  local group = K .. 'g:' .. job.cluster .. ':' .. name
  call('ZREM', group, job.proc)
  if call('EXISTS', group) == 0 then call('ZREM', K .. 'q:' .. place, member(job.cluster, job.prio)) end
  less(K .. 'places', place)
  less(K .. 'c:' .. job.cluster, '#' .. name)
end

-- Staged procs exist, but are not visible yet.
local visible = {}
local function published(cluster)
  if visible[cluster] == nil then visible[cluster] = call('EXISTS', K .. 'ad:' .. cluster) == 1 end
  return visible[cluster]
end

-- Returns false if there is no such job.
local function load(cluster, proc)
  local value = published(cluster) and call('HGET', K .. 'j:' .. cluster, proc)
  if not value then return false end
  local cut = string.find(value, '\n', 1, true)
  local state, manager, site, prio, attempt, since =
    string.match(string.sub(value, 1, cut - 1), '^([^|]*)|(%d+)|(%d+)|(-?%d+)|(%d+)|(-?%d+)$')
  return { cluster = cluster, proc = proc, state = state, manager = manager, site = site, prio = prio,
    attempt = attempt, since = since, own = string.sub(value, cut + 1) }
end

local function save(job)
  call('HSET', K .. 'j:' .. job.cluster, job.proc, job.state .. '|' .. job.manager .. '|' .. job.site .. '|' .. job.prio ..
    '|' .. job.attempt .. '|' .. job.since .. '\n' .. job.own)
end

local function event(now, type, rest)
  call('XADD', K .. 'events', '*', 'e', '{"v":1,"at":' .. now .. ',"type":"' .. type .. '",' .. rest .. '}')
end

-- The same for the manager of the cluster's DAG, until the DAG has ended.
local dags = {}
local function dagEvent(cluster, now, type, rest)
  if dags[cluster] == nil then dags[cluster] = call('HGET', K .. 'c:' .. cluster, 'dag') end
  local dag = dags[cluster]
  if not dag or call('EXISTS', K .. 'dn:' .. dag) == 0 then return end
  call('XADD', K .. 'dag:' .. dag, '*', 'e', '{"v":1,"at":' .. now .. ',"type":"' .. type .. '",' .. rest .. '}')
end

local function stale(lease, epoch)
  return lease ~= '' and call('HGET', K .. 'epochs', lease) ~= epoch
end

-- ARGV[i] = n, then n times proc and value; then m, then m times manager, site, prio, state, count and that many procs.
-- Writes them, and calls `seen` for each group.
local function put(cluster, i, seen)
  local jobs = K .. 'j:' .. cluster
  local last = i + 2 * tonumber(ARGV[i])
  for from = i + 1, last, 4000 do
    call('HSET', jobs, unpack(ARGV, from, math.min(from + 3999, last)))
  end
  i = last + 1
  local groups = tonumber(ARGV[i])
  i = i + 1
  for _ = 1, groups do
    local manager, site, prio, state, n = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4])
    local name = manager .. ':' .. site .. ':' .. prio .. ':' .. state
    local pairs, size = {}, 0
    for at = i + 5, i + 4 + n do
      pairs[size + 1], pairs[size + 2] = ARGV[at], ARGV[at]
      size = size + 2
      if size == 4000 or at == i + 4 + n then
        call('ZADD', K .. 'g:' .. cluster .. ':' .. name, unpack(pairs, 1, size))
        size = 0
      end
    end
    seen(manager, site, prio, state, n, name)
    i = i + 5 + n
  end
end

-- Returns nil if the job never had one.
local function candidatesOf(cluster, proc)
  local text = call('HGET', K .. 'b:' .. cluster, proc)
  return text and cjson.decode(text)
end

local function saveCandidates(cluster, proc, candidates)
  if next(candidates.open) == nil and call('HEXISTS', K .. 'j:' .. cluster, proc) == 0 then
    call('HDEL', K .. 'b:' .. cluster, proc)
  else
    call('HSET', K .. 'b:' .. cluster, proc, cjson.encode(candidates))
  end
end

local function enterCandidate(cluster, proc, attempt, candidate, now)
  local place = candidate.m .. ':' .. candidate.w .. ':' .. candidate.s
  call('ZADD', K .. 'o:' .. place, now, cluster .. '.' .. proc .. '.' .. attempt)
  call('HINCRBY', K .. 'candidates', place, 1)
end

local function leaveCandidate(cluster, proc, attempt, candidate)
  local place = candidate.m .. ':' .. candidate.w .. ':' .. candidate.s
  call('ZREM', K .. 'o:' .. place, cluster .. '.' .. proc .. '.' .. attempt)
  less(K .. 'candidates', place)
end

-- Moves one candidate and writes the event. The caller saves `candidates`, which are the job's. Returns the new state,
-- or false if the step is not possible.
local function stepCandidate(cluster, proc, candidates, attempt, what, words, now)
  local candidate = candidates.open[attempt]
  local to = CANDIDATES[candidate.s] and CANDIDATES[candidate.s][what]
  if not to then return false end
  leaveCandidate(cluster, proc, attempt, candidate)
  if to == 'gone' then
    candidates.open[attempt] = nil
  else
    candidate.s, candidate.t, candidate.n = to, string.sub(now, 1, -4), words
    enterCandidate(cluster, proc, attempt, candidate, now)
  end
  event(now, 'candidate', '"job":"' .. cluster .. '.' .. proc .. '","attempt":' .. attempt ..
    ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', candidate.m) or '') ..
    ',"site":' .. cjson.encode(call('HGET', K .. 'ids', candidate.w) or '') ..
    ',"event":"' .. what .. '","to":"' .. to .. '"' .. (words and ',"message":' .. cjson.encode(words) or ''))
  return to
end

-- Withdraws all candidates of a job that no longer needs them.
local function withdrawCandidates(cluster, proc, candidates, now)
  for attempt in pairs(candidates.open) do stepCandidate(cluster, proc, candidates, attempt, 'withdraw', nil, now) end
end

-- Deletes a cluster that has no jobs and will get none.
local function sweep(cluster)
  if call('EXISTS', K .. 'j:' .. cluster) == 1 or call('ZSCORE', K .. 'late', cluster) then return end
  call('DEL', K .. 'c:' .. cluster, K .. 'ad:' .. cluster)
  call('ZREM', K .. 'clusters', cluster)
end
