-- ARGV: clusters. Returns a list for each that exists: cluster, owner, batch, at, next, total, universe, dagman, first
-- proc, last proc, then state and jobs of each group. The cost depends on the number of clusters and groups, not of
-- jobs.
local found = {}
for _, cluster in ipairs(ARGV) do
  local fields = call('HGETALL', K .. 'c:' .. cluster)
  local known, groups = {}, {}
  for i = 1, #fields, 2 do
    if string.byte(fields[i]) == 35 then groups[#groups + 1] = i else known[fields[i]] = fields[i + 1] end
  end
  if known.token then
    local one = { cluster, known.owner, known.batch, known.at, known.next, known.total, known.universe, known.dagman, '', '' }
    local first, last
    for _, i in ipairs(groups) do
      local name = string.sub(fields[i], 2)
      local low, high = endsOf(K .. 'g:' .. cluster .. ':' .. name)
      if low and (not first or tonumber(low) < tonumber(first)) then first = low end
      if high and (not last or tonumber(high) > tonumber(last)) then last = high end
      one[#one + 1], one[#one + 2] = string.match(name, '([^:]*)$'), fields[i + 1]
    end
    one[9], one[10] = first or '', last or ''
    found[#found + 1] = one
  end
end
return found
