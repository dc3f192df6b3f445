-- Shared by all scripts. The host defines before it: K (the key prefix), LIFE[state][event] = state, SHOWS[state] = the
-- name of the JobStatus, STATUS[state] = its number, ENDS[state] and ROUTABLE[state] = true, CANDIDATES[state][event] =
-- state of a candidate, or 'gone'.
--
-- meta                hash     version, agent, cluster (the last id assigned), kv, run (the server's run id), life
--                              (the number of the incarnation)
-- lives               hash     number of an earlier incarnation = 'run|events|cluster' at its end
-- names, ids          hashes   names of managers and sites to small numbers, and back; '' is 0
-- clusters, late      zsets    cluster ids; those that still have procs to create
-- c:<cluster>         hash     owner, batch, at, next, total, digest, token, manager, site, hist ('file|offset|length'
--                              of its ad in the history), dag (its DAG manager's cluster), universe, dagman
--                              (JobUniverse and DAGManJobId, or ''), and
--                              '#<manager>:<site>:<priority>:<state>' = jobs in that group
-- ad:<cluster>        string   JSON: the attributes that the procs share
-- j:<cluster>         hash     proc = 'state|manager|site|priority|attempt|since' LF JSON of the job's own attributes
-- g:<cluster>:<manager>:<site>:<priority>:<state>   hash   a group, a bit for each proc: page = bits of 1024 procs, the
--                              lowest first, without zero bytes at its end
-- q:<manager>:<site>:<state>   zset   groups, by -priority and cluster
-- places              hash     '<manager>:<site>:<state>' = jobs
-- u:<cluster>         hash     procs that were removed before they are created, as a group's
-- b:<cluster>         hash     proc = JSON of its candidates: last (the last attempt given to one), open (attempt = {
--                              s state, m manager, w site, t since (s), n the site's message}), refused (site =
--                              message)
-- o:<manager>:<site>:<state>   zset   '<cluster>.<proc>.<attempt>' of candidates, by time
-- candidates          hash     '<manager>:<site>:<state>' = candidates
-- staging             hash     cluster = 'token|touched': not visible yet; sg:<cluster> set: its groups
-- history             hash     file, size: the history file, and the size up to which its jobs have left the queue
-- events              stream   e: lines of JSON, each one event, or one that many jobs share, which then names them as
--                              "jobs": '<cluster>.<proc>[-<proc>],…'; n: how many events, if more than one
-- cursors             hash
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

local PAGE = 1024
local BITS = { [0] = 1, 2, 4, 8, 16, 32, 64, 128 }

-- Puts procs into a group, or takes them out.
local function mark(key, procs, there)
  local pages = {}
  for _, proc in ipairs(procs) do
    local n = tonumber(proc)
    local page = math.floor(n / PAGE)
    local bytes = pages[page]
    if not bytes then
      bytes = { string.byte(call('HGET', key, page) or '', 1, -1) }
      pages[page] = bytes
    end
    local at = n % PAGE
    local i, one = math.floor(at / 8) + 1, BITS[at % 8]
    for zero = #bytes + 1, i do bytes[zero] = 0 end
    bytes[i] = there and bit.bor(bytes[i], one) or bit.band(bytes[i], 255 - one)
  end
  for page, bytes in pairs(pages) do
    local n = #bytes
    while bytes[n] == 0 do n = n - 1 end
    if n > 0 then call('HSET', key, page, string.char(unpack(bytes, 1, n))) else call('HDEL', key, page) end
  end
end

local function pagesOf(key)
  local pages = call('HKEYS', key)
  for i, page in ipairs(pages) do pages[i] = tonumber(page) end
  return pages
end

local function eachIn(page, bits, seen)
  for i = 1, #bits do
    local byte = string.byte(bits, i)
    for b = 0, byte == 0 and -1 or 7 do
      if bit.band(byte, BITS[b]) ~= 0 then seen(string.format('%.0f', page * PAGE + 8 * (i - 1) + b)) end
    end
  end
end

-- The lowest procs of a group, at most `most`, in order.
local function procsIn(key, most)
  local pages, procs = pagesOf(key), {}
  table.sort(pages)
  for _, page in ipairs(pages) do
    if #procs >= most then break end
    eachIn(page, call('HGET', key, page), function(proc)
      if #procs < most then procs[#procs + 1] = proc end
    end)
  end
  return procs
end

-- The lowest and the highest proc; nil if there is none.
local function endsOf(key)
  local pages = pagesOf(key)
  if #pages == 0 then return end
  local low, high = math.huge, 0
  for _, page in ipairs(pages) do low, high = math.min(low, page), math.max(high, page) end
  local first, last
  eachIn(low, call('HGET', key, low), function(proc) first = first or proc end)
  eachIn(high, call('HGET', key, high), function(proc) last = proc end)
  return first, last
end

local function countIn(key)
  local n = 0
  for _, page in ipairs(pagesOf(key)) do
    eachIn(page, call('HGET', key, page), function() n = n + 1 end)
  end
  return n
end

-- `group`: { cluster, name, procs }
local function leave(group)
  local manager, site, prio, state = string.match(group.name, '^(%d+):(%d+):(-?%d+):(.*)$')
  local place, key = manager .. ':' .. site .. ':' .. state, K .. 'g:' .. group.cluster .. ':' .. group.name
  mark(key, group.procs, false)
  if call('EXISTS', key) == 0 then call('ZREM', K .. 'q:' .. place, member(group.cluster, prio)) end
  less(K .. 'places', place, #group.procs)
  less(K .. 'c:' .. group.cluster, '#' .. group.name, #group.procs)
end

-- Staged procs exist, but are not visible yet.
local visible = {}
local function published(cluster)
  if visible[cluster] == nil then visible[cluster] = call('EXISTS', K .. 'ad:' .. cluster) == 1 end
  return visible[cluster]
end

-- The first line of a job's value, taken apart once for all jobs that have the same one.
local heads = {}
local function headOf(text)
  local head = heads[text]
  if not head then
    local state, manager, site, prio, attempt, since =
      string.match(text, '^([^|]*)|(%d+)|(%d+)|(-?%d+)|(%d+)|(-?%d+)$')
    head = { text = text, state = state, manager = manager, site = site, prio = prio, attempt = attempt, since = since,
      group = manager .. ':' .. site .. ':' .. prio .. ':' .. state }
    heads[text] = head
  end
  return head
end

local function parse(cluster, proc, value)
  local cut = string.find(value, '\n', 1, true)
  return { cluster = cluster, proc = proc, head = headOf(string.sub(value, 1, cut - 1)), own = string.sub(value, cut + 1) }
end

-- Returns false if there is no such job.
local function load(cluster, proc)
  local value = published(cluster) and call('HGET', K .. 'j:' .. cluster, proc)
  return value and parse(cluster, proc, value)
end

-- Reads jobs of one cluster at once; `seen` is called for each that exists.
local function loadMany(cluster, procs, seen)
  if not published(cluster) then return end
  for from = 1, #procs, 4000 do
    local last = math.min(from + 3999, #procs)
    for i, value in ipairs(call('HMGET', K .. 'j:' .. cluster, unpack(procs, from, last))) do
      if value then seen(parse(cluster, procs[from + i - 1], value)) end
    end
  end
end

-- Sorts jobs by cluster and group. Call with each job; the result is a list of { cluster, name, procs }.
local function grouping()
  local groups, last = {}
  return groups, function(job, name)
    local group = last
    if not last or last.cluster ~= job.cluster or last.name ~= name then
      local key = job.cluster .. ':' .. name
      group = groups[key]
      if not group then
        group = { cluster = job.cluster, name = name, procs = {} }
        groups[key], groups[#groups + 1] = group, group
      end
      last = group
    end
    group.procs[#group.procs + 1] = job.proc
  end
end

local function event(now, type, rest)
  call('XADD', K .. 'events', '*', 'e', '{"v":1,"at":' .. now .. ',"type":"' .. type .. '",' .. rest .. '}')
end

-- '12.0-999,13.5'
local function rangesOf(ids)
  local ranges, cluster, first, last = {}
  local function close()
    if first then ranges[#ranges + 1] = cluster .. '.' .. first .. (last ~= first and '-' .. last or '') end
  end
  for i = 1, #ids, 2 do
    local proc = tonumber(ids[i + 1])
    if ids[i] == cluster and proc == last + 1 then
      last = proc
    else
      close()
      cluster, first, last = ids[i], proc, proc
    end
  end
  close()
  return table.concat(ranges, ',')
end

-- Gathers the events of one script, which become one entry of the stream. Neighbours that differ only in their jobs are
-- written once.
local function telling(now)
  local lines, count, runType, runRest, ids = {}, 0
  local function close()
    if not runType then return end
    local job = #ids == 2 and '"job":"' .. ids[1] .. '.' .. ids[2] .. '"' or '"jobs":"' .. rangesOf(ids) .. '"'
    lines[#lines + 1] = '{"v":1,"at":' .. now .. ',"type":"' .. runType .. '",' .. job .. runRest .. '}'
  end
  return function(job, type, rest)
    count = count + 1
    if type ~= runType or rest ~= runRest then
      close()
      runType, runRest, ids = type, rest, {}
    end
    ids[#ids + 1], ids[#ids + 2] = job.cluster, job.proc
  end, function()
    close()
    if count > 1 then
      call('XADD', K .. 'events', '*', 'e', table.concat(lines, '\n'), 'n', string.format('%.0f', count))
    elseif count == 1 then
      call('XADD', K .. 'events', '*', 'e', lines[1])
    end
  end
end

-- The DAG that the cluster belongs to, until it has ended; false if there is none.
local dags = {}
local function dagOf(cluster)
  if dags[cluster] == nil then
    local dag = call('HGET', K .. 'c:' .. cluster, 'dag')
    dags[cluster] = dag and call('EXISTS', K .. 'dn:' .. dag) == 1 and dag
  end
  return dags[cluster]
end

-- The same for the manager of the cluster's DAG.
local function dagEvent(cluster, now, type, rest)
  local dag = dagOf(cluster)
  if not dag then return end
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
    for from = i + 5, i + 4 + n, 4000 do
      mark(K .. 'g:' .. cluster .. ':' .. name, { unpack(ARGV, from, math.min(from + 3999, i + 4 + n)) }, true)
    end
    seen(manager, site, prio, state, n, name)
    i = i + 5 + n
  end
end

-- Returns nil if the job never had one.
local flooded = {}
local function candidatesOf(cluster, proc)
  if flooded[cluster] == nil then flooded[cluster] = call('EXISTS', K .. 'b:' .. cluster) == 1 end
  local text = flooded[cluster] and call('HGET', K .. 'b:' .. cluster, proc)
  return text and cjson.decode(text) or nil
end

local function saveCandidates(cluster, proc, candidates)
  if next(candidates.open) == nil and call('HEXISTS', K .. 'j:' .. cluster, proc) == 0 then
    call('HDEL', K .. 'b:' .. cluster, proc)
  else
    call('HSET', K .. 'b:' .. cluster, proc, cjson.encode(candidates))
    flooded[cluster] = true
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
local function stepCandidate(cluster, proc, candidates, attempt, what, message, now)
  local candidate = candidates.open[attempt]
  local to = CANDIDATES[candidate.s] and CANDIDATES[candidate.s][what]
  if not to then return false end
  leaveCandidate(cluster, proc, attempt, candidate)
  if to == 'gone' then
    candidates.open[attempt] = nil
  else
    candidate.s, candidate.t, candidate.n = to, string.sub(now, 1, -4), message
    enterCandidate(cluster, proc, attempt, candidate, now)
  end
  event(now, 'candidate', '"job":"' .. cluster .. '.' .. proc .. '","attempt":' .. attempt ..
    ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', candidate.m) or '') ..
    ',"site":' .. cjson.encode(call('HGET', K .. 'ids', candidate.w) or '') ..
    ',"event":"' .. what .. '","to":"' .. to .. '"' .. (message and ',"message":' .. cjson.encode(message) or ''))
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
