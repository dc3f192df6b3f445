-- ARGV: now (ms), lease ('' for a user's action), epoch, JSON list of { i cluster, p list of procs, e event?,
-- f {state = true}?, w {manager, site}? where the job must be, s {attr: text or null}?, n info as JSON text?, a
-- attempt?, r {manager, site}?, b the attempt of the granted candidate?, d the adopted attempt?, u a number that the
-- next attempts must exceed? }, each a change of all its jobs.
-- Returns for each job: 'ok|state|attempt', or a refusal: 'no-such-job', 'wrong-state|state', 'wrong-attempt|state',
-- 'stale-epoch'; equal neighbours once, after their number.
local now, refused = ARGV[1], stale(ARGV[2], ARGV[3])
local wishes = cjson.decode(ARGV[4])

-- A batch is computed first and written afterwards: each job is read and written only once, and so is each group that
-- many jobs leave or enter.
local jobs, touched, dagNews = {}, {}, {}
local tell, tellAll = telling(now)

local function read()
  local wanted = {}
  for _, wish in ipairs(wishes) do
    local procs = wanted[wish.i]
    if not procs then
      procs = {}
      wanted[wish.i], jobs[wish.i] = procs, {}
    end
    for _, proc in ipairs(wish.p) do procs[#procs + 1] = proc end
  end
  for cluster, procs in pairs(wanted) do
    local found = jobs[cluster]
    loadMany(cluster, procs, function(job)
      job.was = job.head.group
      found[job.proc] = job
    end)
  end
end

local function attributes(job)
  if not job.attrs then job.attrs = cjson.decode(job.own) end
  return job.attrs
end

local function moves(job)
  if job.attrs then return type(job.attrs['GryphusMoveTo']) == 'string' end
  return string.find(job.own, '"GryphusMoveTo":"', 1, true)
end

local function write()
  local left, leaving = grouping()
  local entered, entering = grouping()
  local saved = {}
  for _, job in ipairs(touched) do
    if job.head.group ~= job.was then
      leaving(job, job.was)
      entering(job, job.head.group)
    end
    local fields = saved[job.cluster]
    if not fields then
      fields = {}
      saved[job.cluster] = fields
    end
    if job.attrs then job.own = cjson.encode(job.attrs) end
    fields[#fields + 1], fields[#fields + 2] = job.proc, job.head.text .. '\n' .. job.own
  end
  for cluster, fields in pairs(saved) do call('HSET', K .. 'j:' .. cluster, unpack(fields)) end
  for _, group in ipairs(left) do leave(group) end
  for _, group in ipairs(entered) do
    local manager, site, prio, state = string.match(group.name, '^(%d+):(%d+):(-?%d+):(.*)$')
    mark(K .. 'g:' .. group.cluster .. ':' .. group.name, group.procs, true)
    admit(group.cluster, manager, site, prio, state, #group.procs)
  end
  tellAll()
  for _, one in ipairs(dagNews) do dagEvent(unpack(one)) end
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

-- What a wish sets, in the forms that are needed for each of its jobs. Attributes that a job does not have yet are
-- appended to its text, which is much faster than to decode and encode it.
local function prepare(wish)
  local set = wish.s or {}
  wish.set, wish.json, wish.marks, wish.steps = set, cjson.encode(set), {}, {}
  wish.tail = wish.n and ',"info":' .. wish.n or ''
  local marked = {}
  for name, value in pairs(set) do
    local low = string.lower(name)
    if low == 'jobprio' then wish.prio = string.format('%.0f', tonumber(text(value) or '0') or 0) end
    -- The last of two spellings counts.
    if marked[low] or low == 'lastjobstatus' or not string.find(name, '^[%w_]+$') then wish.apart = true end
    marked[low] = true
    wish.marks[#wish.marks + 1] = '"' .. low .. '":'
  end
end

local function lacks(own, marks)
  for _, mark in ipairs(marks) do
    if string.find(own, mark, 1, true) then return false end
  end
  return true
end

local STATUS_MARK = { '"lastjobstatus":' }

local function update(job, wish, from, turns)
  if not job.attrs and not wish.apart then
    local own = string.lower(job.own)
    if lacks(own, wish.marks) and (not turns or lacks(own, STATUS_MARK)) then
      local fields = string.sub(wish.json, 2, -2)
      if turns then fields = fields .. (fields ~= '' and ',' or '') .. '"LastJobStatus":"' .. STATUS[from] .. '"' end
      if fields ~= '' then job.own = string.sub(job.own, 1, -2) .. (job.own ~= '{}' and ',' or '') .. fields .. '}' end
      return
    end
  end
  for name, value in pairs(wish.set) do assign(job, name, value) end
  if turns then assign(job, 'LastJobStatus', STATUS[from]) end
end

-- What a wish means for a job with this head: a refusal, or a step. `candidates`: those of the job.
local function stepOf(wish, head, candidates)
  local from, to = head.state, head.state
  if wish.e then to = LIFE[from] and LIFE[from][wish.e] end
  local wrong = { refusal = 'wrong-state|' .. from }
  if not to or (wish.f and not wish.f[from]) or (wish.r and not ROUTABLE[to] and wish.e ~= 'adopted') then return wrong end
  if wish.w and (wish.w[1] ~= head.manager or wish.w[2] ~= head.site) then return wrong end
  local other = { refusal = 'wrong-attempt|' .. from }
  if wish.a and wish.a ~= head.attempt then return other end
  if (wish.e == 'granted') ~= (wish.b ~= nil) or (wish.e == 'adopted') ~= (wish.d ~= nil) then return wrong end

  local manager, site, attempt = head.manager, head.site, head.attempt
  if wish.d then
    -- The key of a later attempt must not be used twice.
    if tonumber(wish.d) < tonumber(attempt) then return other end
    attempt = wish.d
  end
  if wish.u and tonumber(wish.u) > tonumber(attempt) then attempt = wish.u end
  if wish.b then
    local candidate = candidates and candidates.open[wish.b]
    if site ~= '0' or not candidate or not CANDIDATES[candidate.s].granted then return other end
    manager, site, attempt = candidate.m, candidate.w, wish.b
  end
  if wish.e == 'take' then
    attempt = string.format('%.0f', math.max(tonumber(attempt), candidates and candidates.last or 0) + 1)
  end
  if wish.r then manager, site = wish.r[1], wish.r[2] end
  local turns = SHOWS[to] ~= SHOWS[from]
  local step = { from = from, to = to, turns = turns, answer = 'ok|' .. to .. '|' .. attempt,
    -- If the job was requested elsewhere after its site was asked to release it, the caller must read it again to learn
    -- where it goes.
    stays = (wish.e == 'withdrawn' or wish.e == 'forgotten') and ROUTABLE[to] and not wish.r,
    head = headOf(to .. '|' .. manager .. '|' .. site .. '|' .. (wish.prio or head.prio) .. '|' .. attempt .. '|' ..
      (turns and string.sub(now, 1, -4) or head.since)) }
  if wish.e then
    step.type = 'transition'
    step.rest = ',"event":"' .. wish.e .. '","from":"' .. from .. '","to":"' .. to .. '","attempt":' .. attempt ..
      ',"set":' .. wish.json .. wish.tail
  elseif next(wish.set) ~= nil or wish.n then
    step.type, step.rest = 'edited', ',"set":' .. wish.json .. wish.tail
  end
  if wish.r then
    step.routed = ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', manager) or '') ..
      ',"site":' .. cjson.encode(call('HGET', K .. 'ids', site) or '')
  end
  return step
end

-- Jobs that look the same take the same step.
local function sameStep(wish, head)
  local step = wish.steps[head]
  if not step then
    step = stepOf(wish, head)
    wish.steps[head] = step
  end
  return step
end

local function change(wish, proc)
  local job = jobs[wish.i][proc]
  if not job then return 'no-such-job' end
  if refused then return 'stale-epoch' end
  -- Only a job of the broker has candidates, and only while it is not routed.
  local candidates = (job.head.state == 'idle' or wish.e == 'release') and candidatesOf(job.cluster, job.proc) or nil
  local step = candidates and stepOf(wish, job.head, candidates) or sameStep(wish, job.head)
  if step.refusal then return step.refusal end
  if step.stays and moves(job) then return 'wrong-state|' .. step.from end

  if wish.b then stepCandidate(job.cluster, job.proc, candidates, wish.b, 'granted', nil, now) end
  update(job, wish, step.from, step.turns)
  if candidates then
    if wish.e == 'release' then candidates.refused = {} end
    if step.to ~= 'idle' or step.head.site ~= '0' then withdrawCandidates(job.cluster, job.proc, candidates, now) end
    saveCandidates(job.cluster, job.proc, candidates)
  end
  job.head = step.head
  if not job.touched then
    job.touched = true
    touched[#touched + 1] = job
  end

  if step.type then
    tell(job, step.type, step.rest)
    if step.type == 'transition' and dagOf(job.cluster) or wish.set.ProvisionerState then
      dagNews[#dagNews + 1] = { job.cluster, now, step.type, '"job":"' .. job.cluster .. '.' .. job.proc .. '"' .. step.rest }
    end
  end
  if step.routed then tell(job, 'routed', step.routed) end
  return step.answer
end

read()
local answers, last = {}
for _, wish in ipairs(wishes) do
  prepare(wish)
  for _, proc in ipairs(wish.p) do
    local answer = change(wish, proc)
    if answer == last then
      answers[#answers - 1] = answers[#answers - 1] + 1
    else
      answers[#answers + 1], answers[#answers + 2], last = 1, answer, answer
    end
  end
end
write()
return answers
