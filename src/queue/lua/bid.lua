-- ARGV: now (ms), lease, epoch, JSON list of { i cluster, p proc, e event?, a attempt?, m manager, w site (of 'opened'), n words? }.
-- Without an event the site's words change, and nobody is told. Answers for each: 'ok|state|attempt', or a refusal: 'no-such-bid',
-- 'wrong-state|state', 'stale-epoch'; of 'opened' also 'no-such-job', and 'wrong-state' where the job is no longer without a site.
local now, refused = ARGV[1], stale(ARGV[2], ARGV[3])

local function open(wish)
  local job = load(wish.i, wish.p)
  if not job then return 'no-such-job' end
  if job.state ~= 'idle' or job.site ~= '0' then return 'wrong-state' end
  local bids = bidsOf(wish.i, wish.p) or { last = 0, open = {}, refused = {} }
  for _, bid in pairs(bids.open) do
    if bid.w == wish.w then return 'wrong-state|' .. bid.s end
  end
  bids.last = math.max(bids.last, tonumber(job.attempt)) + 1
  local attempt = string.format('%.0f', bids.last)
  local bid = { s = 'preparing', m = wish.m, w = wish.w, t = string.sub(now, 1, -4) }
  bids.open[attempt] = bid
  enterBid(wish.i, wish.p, attempt, bid, now)
  saveBids(wish.i, wish.p, bids)
  event(now, 'bid', '"job":"' .. wish.i .. '.' .. wish.p .. '","attempt":' .. attempt ..
    ',"manager":' .. cjson.encode(call('HGET', K .. 'ids', wish.m) or '') ..
    ',"site":' .. cjson.encode(call('HGET', K .. 'ids', wish.w) or '') .. ',"event":"opened","to":"preparing"')
  return 'ok|preparing|' .. attempt
end

local function step(wish)
  if refused then return 'stale-epoch' end
  if wish.e == 'opened' then return open(wish) end
  local bids = bidsOf(wish.i, wish.p)
  local bid = bids and bids.open[wish.a]
  if not bid then return 'no-such-bid' end
  local to = bid.s
  if wish.e then
    -- The grant is the job's step: change.lua.
    to = wish.e ~= 'granted' and stepBid(wish.i, wish.p, bids, wish.a, wish.e, wish.n, now)
    if not to then return 'wrong-state|' .. bid.s end
    if wish.e == 'refused' then bids.refused[bid.w] = wish.n or '' end
  else
    bid.n = wish.n
  end
  saveBids(wish.i, wish.p, bids)
  return 'ok|' .. to .. '|' .. wish.a
end

local answers = {}
for n, wish in ipairs(cjson.decode(ARGV[4])) do answers[n] = step(wish) end
return answers
