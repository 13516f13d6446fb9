class Nudge < Formula
  desc "Engagement server whose decisions are WebAssembly plugins"
  homepage "HOMEPAGE"
  url "RELEASE/nudge-VERSION-CPU-linux.tar.gz"
  sha256 "SHA256"
  license "Apache-2.0"

  depends_on arch: :ARCH
  depends_on :linux

  def install
    bin.install "nudge"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/nudge.bash" => "nudge"
    zsh_completion.install "completions/nudge.zsh" => "_nudge"
    fish_completion.install "completions/nudge.fish"
    pkgshare.install "nudge.toml"
  end

  service do
    run [opt_bin/"nudge", "serve", "--data-dir", var/"nudge"]
    keep_alive true
    working_dir var
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/nudge --version")
    assert_match "[server]", shell_output("#{bin}/nudge config")
  end
end
