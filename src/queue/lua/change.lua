-- ARGV: now (ms), lease ('' for a user's action), epoch, JSON list of { i cluster, p proc, e event?, f {state = true}?,
-- w {manager, site}? where it must be, s {attr: text or null}?, n info as JSON text?, a attempt?, r {manager, site}?, b the attempt of the candidate that is granted?,
-- d the attempt that is adopted?, u the attempt that its next ones come after? }.
-- Answers for each: 'ok|state|attempt', or a refusal: 'no-such-job', 'wrong-state|state', 'wrong-attempt|state', 'stale-epoch'.
local now, refused = ARGV[1], stale(ARGV[2], ARGV[3])

local function text(value)
  return value ~= nil and value ~= cjson.null and value or nil
end

local function spelled(own, name)
  if own[name] ~= nil then return name end
  local low = string.lower(name)
  for known in pairs(own) do
    if string.lower(known) == low then return known end
  end
  return name
end

local function change(wish)
  local job = load(wish.i, wish.p)
  if not job then return 'no-such-job' end
  if refused then return 'stale-epoch' end
  local to = job.state
  if wish.e then to = LIFE[job.state] and LIFE[job.state][wish.e] end
  if not to or (wish.f and not wish.f[job.state]) or (wish.r and not ROUTABLE[to] and wish.e ~= 'adopted') then
    return 'wrong-state|' .. job.state
  end
  if wish.w and (wish.w[1] ~= job.manager or wish.w[2] ~= job.site) then return 'wrong-state|' .. job.state end
  -- Somebody wants it elsewhere since its site was asked to let it go: whoever reads it again knows where it goes.
  if (wish.e == 'withdrawn' or wish.e == 'forgotten') and ROUTABLE[to] and not wish.r
      and string.find(job.own, '"GryphusMoveTo":"', 1, true) then
    return 'wrong-state|' .. job.state
  end
  if wish.a and wish.a ~= job.attempt then return 'wrong-attempt|' .. job.state end

  local from, manager, site, prio = job.state, job.manager, job.site, job.prio
  -- Only a job of the broker's has candidates, and only until it goes anywhere.
  local candidates = (from == 'idle' or wish.e == 'release') and candidatesOf(job.cluster, job.proc) or nil
  if (wish.e == 'granted') ~= (wish.b ~= nil) then return 'wrong-state|' .. job.state end
  if (wish.e == 'adopted') ~= (wish.d ~= nil) then return 'wrong-state|' .. job.state end
  if wish.d then
    -- A later attempt's key must not be given twice.
    if tonumber(wish.d) < tonumber(job.attempt) then return 'wrong-attempt|' .. job.state end
    job.attempt = wish.d
  end
  if wish.u and tonumber(wish.u) > tonumber(job.attempt) then job.attempt = wish.u end
  if wish.b then
    local candidate = candidates and candidates.open[wish.b]
    if site ~= '0' or not candidate or not CANDIDATES[candidate.s].granted then return 'wrong-attempt|' .. job.state end
    manager, site = candidate.m, candidate.w
    stepCandidate(job.cluster, job.proc, candidates, wish.b, 'granted', nil, now)
    job.attempt = wish.b
  end
  local turns = SHOWS[to] ~= SHOWS[from]
  local set = wish.s or {}
  if next(set) ~= nil or turns then
    local own = cjson.decode(job.own)
    for name, value in pairs(set) do
      own[spelled(own, name)] = value
      if string.lower(name) == 'jobprio' then prio = string.format('%.0f', tonumber(text(value) or '0') or 0) end
    end
    if turns then own[spelled(own, 'LastJobStatus')] = STATUS[from] end
    job.own = cjson.encode(own)
  end
  if turns then job.since = string.sub(now, 1, -4) end
  if wish.e == 'take' then
    job.attempt = string.format('%.0f', math.max(tonumber(job.attempt), candidates and candidates.last or 0) + 1)
  end
  if wish.r then manager, site = wish.r[1], wish.r[2] end
  if candidates then
    if wish.e == 'release' then candidates.refused = {} end
    if to ~= 'idle' or site ~= '0' then withdrawCandidates(job.cluster, job.proc, candidates, now) end
    saveCandidates(job.cluster, job.proc, candidates)
  end
  if to ~= from or manager ~= job.manager or site ~= job.site or prio ~= job.prio then
    leave(job)
    job.state, job.manager, job.site, job.prio = to, manager, site, prio
    enter(job)
  end
  save(job)

  local name = '"job":"' .. job.cluster .. '.' .. job.proc .. '"'
  local tail = wish.n and ',"info":' .. wish.n or ''
  if wish.e then
    local rest = name .. ',"event":"' .. wish.e .. '","from":"' .. from .. '","to":"' .. to ..
      '","attempt":' .. job.attempt .. ',"set":' .. cjson.encode(set) .. tail
    event(now, 'transition', rest)
    dagEvent(job.cluster, now, 'transition', rest)
  elseif next(set) ~= nil or wish.n then
    local rest = name .. ',"set":' .. cjson.encode(set) .. tail
    event(now, 'edited', rest)
    if set.ProvisionerState then dagEvent(job.cluster, now, 'edited', rest) end
  end
  if wish.r then
    event(now, 'routed', name .. ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', manager) or '') ..
      ',"site":' .. cjson.encode(call('HGET', K .. 'ids', site) or ''))
  end
  return 'ok|' .. to .. '|' .. job.attempt
end

local answers = {}
for n, wish in ipairs(cjson.decode(ARGV[4])) do answers[n] = change(wish) end
return answers
