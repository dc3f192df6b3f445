-- ARGV: manager, site, state, limit ('-1' for all). Returns cluster, proc, attempt, since (s), message of each, oldest
-- first.
local names = call('ZRANGE', K .. 'o:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3], 0, ARGV[4] == '-1' and -1 or ARGV[4] - 1)
local found = {}
for _, name in ipairs(names) do
  local cluster, proc, attempt = string.match(name, '^(%d+)%.(%d+)%.(%d+)$')
  local candidates = candidatesOf(cluster, proc)
  local candidate = candidates and candidates.open[attempt]
  if candidate then
    for _, word in ipairs({ cluster, proc, attempt, candidate.t, candidate.n or '' }) do found[#found + 1] = word end
  end
end
return found
