-- ARGV: manager, site, state, limit. Returns cluster, proc, value of each, in the order of the queue.
local place, want = ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3], tonumber(ARGV[4])
local found, from = {}, 0
while want > 0 do
  local groups = call('ZRANGE', K .. 'q:' .. place, from, from + 99)
  for _, name in ipairs(groups) do
    local cluster, prio = string.match(name, '^.(%d+):(-?%d+)$')
    local group = K .. 'g:' .. cluster .. ':' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. prio .. ':' .. ARGV[3]
    local procs = procsIn(group, want)
    for n = 1, #procs, 1000 do
      local last = math.min(n + 999, #procs)
      for i, value in ipairs(call('HMGET', K .. 'j:' .. cluster, unpack(procs, n, last))) do
        found[#found + 1], found[#found + 2], found[#found + 3] = cluster, procs[n + i - 1], value
      end
    end
    want = want - #procs
    if want <= 0 then break end
  end
  if #groups < 100 then break end
  from = from + 100
end
return found
