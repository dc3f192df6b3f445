-- ARGV: maximum number of jobs, manager and site ('' for any), then states (none for any). Returns cluster, proc, … of
-- the jobs in these places at one moment, in no particular order; false if there are more.
local most, manager, site = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local states = #ARGV > 3 and {} or nil
for i = 4, #ARGV do states[ARGV[i]] = true end
local places, jobs = {}, 0
local counts = call('HGETALL', K .. 'places')
for i = 1, #counts, 2 do
  local m, s, state = string.match(counts[i], '^(%d+):(%d+):(.*)$')
  if (manager == '' or m == manager) and (site == '' or s == site) and (not states or states[state]) then
    places[#places + 1] = { m, s, state }
    jobs = jobs + tonumber(counts[i + 1])
  end
end
if jobs > most then return false end
local found = {}
for _, place in ipairs(places) do
  local m, s, state = place[1], place[2], place[3]
  for _, group in ipairs(call('ZRANGE', K .. 'q:' .. m .. ':' .. s .. ':' .. state, 0, -1)) do
    local cluster, prio = string.match(group, '^.(%d+):(-?%d+)$')
    for _, proc in ipairs(procsIn(K .. 'g:' .. cluster .. ':' .. m .. ':' .. s .. ':' .. prio .. ':' .. state, most)) do
      found[#found + 1], found[#found + 2] = cluster, proc
    end
  end
end
return found
