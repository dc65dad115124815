-- gradsmith in Neovim 0.7 or later: put this file into ~/.config/nvim/plugin/.
-- Quick fixes: vim.lsp.buf.code_action(). The page of a rule: vim.lsp.buf.hover().
-- "check gradient" and "derive backward" above a class: vim.lsp.codelens.run().

local clients = {} -- for Neovim 0.7, which has no vim.lsp.start: the client of each root

local function root_of(buffer)
  local folder = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p:h")
  local settings = vim.fn.findfile("pyproject.toml", folder .. ";")
  return settings ~= "" and vim.fn.fnamemodify(settings, ":p:h") or folder
end

local function show_lenses(buffer)
  if vim.lsp.codelens.enable then -- Neovim 0.12
    vim.lsp.codelens.enable(true, { bufnr = buffer })
    return
  end
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "TextChanged", "BufWritePost" }, {
    buffer = buffer,
    callback = function() vim.lsp.codelens.refresh() end,
  })
  vim.lsp.codelens.refresh()
end

local function start(event)
  local root = root_of(event.buf)
  local config = {
    name = "gradsmith",
    cmd = { "gradsmith", "server" },
    root_dir = root,
    on_attach = function(_, buffer) show_lenses(buffer) end,
  }
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = event.buf })
  else
    clients[root] = clients[root] or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(event.buf, clients[root])
  end
end

vim.api.nvim_create_autocmd("FileType", { pattern = "python", callback = start })
