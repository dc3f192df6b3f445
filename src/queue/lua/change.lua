-- ARGV: now (ms), lease ('' for a user's action), epoch, JSON list of { i cluster, p proc, e event?, f {state = true}?,
-- w {manager, site}? where the job must be, s {attr: text or null}?, n info as JSON text?, a attempt?, r {manager,
-- site}?, b the attempt of the granted candidate?, d the adopted attempt?, u a number that the next attempts must
-- exceed? }.
-- Returns for each: 'ok|state|attempt', or a refusal: 'no-such-job', 'wrong-state|state', 'wrong-attempt|state',
-- 'stale-epoch'.
local now, refused = ARGV[1], stale(ARGV[2], ARGV[3])

-- A batch is computed first and written afterwards: each job is read and written only once, and so is each group that
-- many jobs leave or enter.
local jobs, touched, news = {}, {}, {}

local function groupOf(job)
  return job.manager .. ':' .. job.site .. ':' .. job.prio .. ':' .. job.state
end

local function known(cluster, proc)
  local id = cluster .. '.' .. proc
  local job = jobs[id]
  if job == nil then
    job = load(cluster, proc)
    if job then job.group = groupOf(job) end
    jobs[id] = job
  end
  return job
end

local function attributes(job)
  if not job.attrs then job.attrs = cjson.decode(job.own) end
  return job.attrs
end

local function moves(job)
  if job.attrs then return type(job.attrs['GryphusMoveTo']) == 'string' end
  return string.find(job.own, '"GryphusMoveTo":"', 1, true)
end

local function say(write, ...)
  news[#news + 1] = { write, ... }
end

local function members(groups, job, name)
  local key = job.cluster .. ':' .. name
  local group = groups[key]
  if not group then
    group = { cluster = job.cluster, name = name, key = K .. 'g:' .. key, procs = {} }
    groups[key], groups[#groups + 1] = group, group
  end
  group.procs[#group.procs + 1] = job.proc
  return group
end

local function write()
  local left, entered, saved = {}, {}, {}
  for _, job in ipairs(touched) do
    local group = groupOf(job)
    if group ~= job.group then
      members(left, job, job.group)
      members(entered, job, group)
    end
    local fields = saved[job.cluster]
    if not fields then
      fields = {}
      saved[job.cluster] = fields
    end
    if job.attrs then job.own = cjson.encode(job.attrs) end
    fields[#fields + 1], fields[#fields + 2] = job.proc, job.state .. '|' .. job.manager .. '|' .. job.site .. '|' ..
      job.prio .. '|' .. job.attempt .. '|' .. job.since .. '\n' .. job.own
  end
  for cluster, fields in pairs(saved) do call('HSET', K .. 'j:' .. cluster, unpack(fields)) end
  for _, group in ipairs(left) do
    local manager, site, prio, state = string.match(group.name, '^(%d+):(%d+):(-?%d+):(.*)$')
    local place = manager .. ':' .. site .. ':' .. state
    call('ZREM', group.key, unpack(group.procs))
    if call('EXISTS', group.key) == 0 then call('ZREM', K .. 'q:' .. place, member(group.cluster, prio)) end
    less(K .. 'places', place, #group.procs)
    less(K .. 'c:' .. group.cluster, '#' .. group.name, #group.procs)
  end
  for _, group in ipairs(entered) do
    local manager, site, prio, state = string.match(group.name, '^(%d+):(%d+):(-?%d+):(.*)$')
    local scored = {}
    for i, proc in ipairs(group.procs) do scored[2 * i - 1], scored[2 * i] = proc, proc end
    call('ZADD', group.key, unpack(scored))
    admit(group.cluster, manager, site, prio, state, #group.procs)
  end
  for _, one in ipairs(news) do one[1](unpack(one, 2)) end
end

local function text(value)
  return value ~= nil and value ~= cjson.null and value or nil
end

-- Sets an attribute, keeping the spelling of its name if the job already has it.
local function assign(job, name, value)
  local own = attributes(job)
  if own[name] == nil then
    if not job.spelling then
      job.spelling = {}
      for spelled in pairs(own) do job.spelling[string.lower(spelled)] = spelled end
    end
    local low = string.lower(name)
    name = job.spelling[low] or name
    job.spelling[low] = name
  end
  own[name] = value
end

local function change(wish)
  local job = known(wish.i, wish.p)
  if not job then return 'no-such-job' end
  if refused then return 'stale-epoch' end
  local to = job.state
  if wish.e then to = LIFE[job.state] and LIFE[job.state][wish.e] end
  if not to or (wish.f and not wish.f[job.state]) or (wish.r and not ROUTABLE[to] and wish.e ~= 'adopted') then
    return 'wrong-state|' .. job.state
  end
  if wish.w and (wish.w[1] ~= job.manager or wish.w[2] ~= job.site) then return 'wrong-state|' .. job.state end
  -- If the job was requested elsewhere after its site was asked to release it, the caller must read it again to learn
  -- where it goes.
  if (wish.e == 'withdrawn' or wish.e == 'forgotten') and ROUTABLE[to] and not wish.r and moves(job) then
    return 'wrong-state|' .. job.state
  end
  if wish.a and wish.a ~= job.attempt then return 'wrong-attempt|' .. job.state end

  local from, manager, site, prio, attempt = job.state, job.manager, job.site, job.prio, job.attempt
  -- Only a job of the broker has candidates, and only while it is not routed.
  local candidates = (from == 'idle' or wish.e == 'release') and candidatesOf(job.cluster, job.proc) or nil
  if (wish.e == 'granted') ~= (wish.b ~= nil) then return 'wrong-state|' .. job.state end
  if (wish.e == 'adopted') ~= (wish.d ~= nil) then return 'wrong-state|' .. job.state end
  if wish.d then
    -- The key of a later attempt must not be used twice.
    if tonumber(wish.d) < tonumber(attempt) then return 'wrong-attempt|' .. job.state end
    attempt = wish.d
  end
  if wish.u and tonumber(wish.u) > tonumber(attempt) then attempt = wish.u end
  if wish.b then
    local candidate = candidates and candidates.open[wish.b]
    if site ~= '0' or not candidate or not CANDIDATES[candidate.s].granted then return 'wrong-attempt|' .. job.state end
    manager, site = candidate.m, candidate.w
    stepCandidate(job.cluster, job.proc, candidates, wish.b, 'granted', nil, now)
    attempt = wish.b
  end
  local turns = SHOWS[to] ~= SHOWS[from]
  local set = wish.s or {}
  for name, value in pairs(set) do
    assign(job, name, value)
    if string.lower(name) == 'jobprio' then prio = string.format('%.0f', tonumber(text(value) or '0') or 0) end
  end
  if turns then
    assign(job, 'LastJobStatus', STATUS[from])
    job.since = string.sub(now, 1, -4)
  end
  if wish.e == 'take' then
    attempt = string.format('%.0f', math.max(tonumber(attempt), candidates and candidates.last or 0) + 1)
  end
  if wish.r then manager, site = wish.r[1], wish.r[2] end
  if candidates then
    if wish.e == 'release' then candidates.refused = {} end
    if to ~= 'idle' or site ~= '0' then withdrawCandidates(job.cluster, job.proc, candidates, now) end
    saveCandidates(job.cluster, job.proc, candidates)
  end
  job.state, job.manager, job.site, job.prio, job.attempt = to, manager, site, prio, attempt
  if not job.touched then
    job.touched = true
    touched[#touched + 1] = job
  end

  local name = '"job":"' .. job.cluster .. '.' .. job.proc .. '"'
  local tail = wish.n and ',"info":' .. wish.n or ''
  if wish.e then
    local rest = name .. ',"event":"' .. wish.e .. '","from":"' .. from .. '","to":"' .. to ..
      '","attempt":' .. job.attempt .. ',"set":' .. cjson.encode(set) .. tail
    say(event, now, 'transition', rest)
    say(dagEvent, job.cluster, now, 'transition', rest)
  elseif next(set) ~= nil or wish.n then
    local rest = name .. ',"set":' .. cjson.encode(set) .. tail
    say(event, now, 'edited', rest)
    if set.ProvisionerState then say(dagEvent, job.cluster, now, 'edited', rest) end
  end
  if wish.r then
    say(event, now, 'routed', name .. ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', manager) or '') ..
      ',"site":' .. cjson.encode(call('HGET', K .. 'ids', site) or ''))
  end
  return 'ok|' .. to .. '|' .. job.attempt
end

local answers = {}
for n, wish in ipairs(cjson.decode(ARGV[4])) do answers[n] = change(wish) end
write()
return answers
