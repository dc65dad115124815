;;; gradsmith.el --- gradsmith in Emacs, by Eglot -*- lexical-binding: t; -*-

;; (load "/path/to/gradsmith.el") in your init file. Eglot comes with Emacs 29; for 28 it is a package.
;; Quick fixes: M-x eglot-code-actions. The page of a rule: M-x eldoc.
;; Eglot shows no code lenses: M-x gradsmith-check-gradient and M-x gradsmith-derive-backward do what they do,
;; for the Function around point.

;;; Code:

(require 'eglot)
(require 'jsonrpc)
(require 'seq)

(add-to-list 'eglot-server-programs '((python-mode python-ts-mode) . ("gradsmith" "server")))
(add-hook 'python-mode-hook #'eglot-ensure)
(add-hook 'python-ts-mode-hook #'eglot-ensure)

(defun gradsmith--lens (server command)
  "The last lens of COMMAND at or above point, as SERVER has them."
  (let* ((here (1- (line-number-at-pos nil t)))
         (document (list :textDocument (eglot--TextDocumentIdentifier)))
         (lenses (jsonrpc-request server :textDocument/codeLens document)))
    (car (last (seq-filter
                (lambda (lens)
                  (and (equal command (plist-get (plist-get lens :command) :command))
                       (<= (plist-get (plist-get (plist-get lens :range) :start) :line) here)))
                lenses)))))

(defun gradsmith--run (command)
  "Run COMMAND on the Function around point; what comes of it is shown when it is there."
  (let* ((server (or (eglot-current-server) (user-error "Eglot does not manage this buffer")))
         (lens (or (gradsmith--lens server command) (user-error "No Function stands here")))
         (arguments (plist-get (plist-get lens :command) :arguments)))
    (jsonrpc-async-request server :workspace/executeCommand (list :command command :arguments arguments)
                           :timeout 600
                           :success-fn #'ignore
                           :error-fn (lambda (trouble) (message "gradsmith: %s" (plist-get trouble :message))))
    (message "gradsmith runs; Emacs does not wait.")))

(defun gradsmith-check-gradient ()
  "Check the gradient of the Function around point, in the file as it was saved."
  (interactive)
  (gradsmith--run "gradsmith.check"))

(defun gradsmith-derive-backward ()
  "Derive backward of the Function around point, and offer it as an edit."
  (interactive)
  (gradsmith--run "gradsmith.derive"))

(provide 'gradsmith)
;;; gradsmith.el ends here
