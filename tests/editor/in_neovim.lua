-- What a user of Neovim does, and what came of it: written as JSON to the file that ANSWER names.
local out = {}
local function note(name, value) out[name] = value end
vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 50)
local found = {}
for _, d in ipairs(vim.diagnostic.get(0)) do table.insert(found, { d.lnum, d.code or d.user_data.lsp.code, d.source }) end
note("diagnostics", found)
vim.api.nvim_win_set_cursor(0, { 15, 10 })
local params = vim.lsp.util.make_range_params()
params.context = { diagnostics = vim.lsp.diagnostic.get_line_diagnostics and vim.lsp.diagnostic.get_line_diagnostics(0, 14) or {} }
local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 10000)
local titles, chosen = {}, nil
for id, answer in pairs(answers) do
  for _, action in ipairs(answer.result) do
    table.insert(titles, action.title)
    if action.isPreferred then chosen = { id, action } end
  end
end
note("actions", titles)
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", vim.lsp.util.make_position_params(), 10000)
for _, answer in pairs(hover) do note("hover", answer.result.contents.value:sub(1, 30)) end
vim.wait(10000, function() return #vim.lsp.codelens.get(0) > 1 end, 50)
local lenses = {}
for _, lens in ipairs(vim.lsp.codelens.get(0)) do table.insert(lenses, lens.command.title) end
note("lenses", lenses)
local client = vim.lsp.get_client_by_id(chosen[1])
vim.lsp.util.apply_workspace_edit(chosen[2].edit, client.offset_encoding)
note("line", vim.api.nvim_buf_get_lines(0, 14, 15, false)[1])
vim.wait(10000, function() for _, d in ipairs(vim.diagnostic.get(0)) do if d.lnum == 14 then return false end end return true end, 50)
note("left", #vim.diagnostic.get(0))
vim.cmd("silent write")
-- the lens itself, by its command: derive backward
local before = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
for _, lens in ipairs(vim.lsp.codelens.get(0)) do
  if lens.command.title == "derive backward" then client.request("workspace/executeCommand", lens.command, function(err, result) out.derived = err or result end, 0) end
end
vim.wait(100000, function() return out.derived ~= nil end, 100)
note("changed", before ~= table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"))
vim.fn.writefile({ vim.fn.json_encode(out) }, os.getenv("ANSWER"))
vim.cmd("qa!")
