-- ARGV: now (ms), lease, epoch, JSON list of { i cluster, p proc, e event?, a attempt?, m manager, w site (for
-- 'opened'), n message? }. Without an event only the site's message changes, and no event is written. Returns for each:
-- 'ok|state|attempt', or a refusal: 'no-such-candidate', 'wrong-state|state', 'stale-epoch'; for 'opened' also
-- 'no-such-job', and 'wrong-state' if the job is no longer idle and without a site.
local now, refused = ARGV[1], stale(ARGV[2], ARGV[3])

local function open(wish)
  local job = load(wish.i, wish.p)
  if not job then return 'no-such-job' end
  if job.head.state ~= 'idle' or job.head.site ~= '0' then return 'wrong-state' end
  local candidates = candidatesOf(wish.i, wish.p) or { last = 0, open = {}, refused = {} }
  for _, candidate in pairs(candidates.open) do
    if candidate.w == wish.w then return 'wrong-state|' .. candidate.s end
  end
  candidates.last = math.max(candidates.last, tonumber(job.head.attempt)) + 1
  local attempt = string.format('%.0f', candidates.last)
  local candidate = { s = 'preparing', m = wish.m, w = wish.w, t = string.sub(now, 1, -4) }
  candidates.open[attempt] = candidate
  enterCandidate(wish.i, wish.p, attempt, candidate, now)
  saveCandidates(wish.i, wish.p, candidates)
  event(now, 'candidate', '"job":"' .. wish.i .. '.' .. wish.p .. '","attempt":' .. attempt ..
    ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', wish.m) or '') ..
    ',"site":' .. cjson.encode(call('HGET', K .. 'ids', wish.w) or '') .. ',"event":"opened","to":"preparing"')
  return 'ok|preparing|' .. attempt
end

local function step(wish)
  if refused then return 'stale-epoch' end
  if wish.e == 'opened' then return open(wish) end
  local candidates = candidatesOf(wish.i, wish.p)
  local candidate = candidates and candidates.open[wish.a]
  if not candidate then return 'no-such-candidate' end
  local to = candidate.s
  if wish.e then
    -- A grant is a step of the job: see change.lua.
    to = wish.e ~= 'granted' and stepCandidate(wish.i, wish.p, candidates, wish.a, wish.e, wish.n, now)
    if not to then return 'wrong-state|' .. candidate.s end
    if wish.e == 'refused' then candidates.refused[candidate.w] = wish.n or '' end
  else
    candidate.n = wish.n
  end
  saveCandidates(wish.i, wish.p, candidates)
  return 'ok|' .. to .. '|' .. wish.a
end

local answers = {}
for n, wish in ipairs(cjson.decode(ARGV[4])) do answers[n] = step(wish) end
return answers
